"""protoc as a judge: it is in the package grpcio-tools, which only tests use."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import grpc_tools
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_tools import protoc

INCLUDED = Path(grpc_tools.__file__).parent / "_proto"


def compiled(texts: Mapping[str, str], folder: Path) -> descriptor_pb2.FileDescriptorSet | str:
    """The descriptors of all files, those that they import first; or what protoc says against them."""
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return compiled_files(list(texts), [folder], folder)


def compiled_files(
    names: list[str], roots: list[Path], folder: Path
) -> descriptor_pb2.FileDescriptorSet | str:
    out, said = folder / "descriptors.pb", folder / "said"
    arguments = ["protoc", *(f"-I{root}" for root in [*roots, INCLUDED]), "--include_imports"]
    arguments += ["--retain_options", f"--descriptor_set_out={out}", *names]
    # It writes to the descriptor, not to sys.stderr.
    kept = os.dup(2)
    with said.open("wb") as file:
        os.dup2(file.fileno(), 2)
        try:
            status = protoc.main(arguments)
        finally:
            os.dup2(kept, 2)
            os.close(kept)
    if status != 0:
        return said.read_text(encoding="utf-8", errors="replace") or "refused"
    return descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())


@lru_cache(maxsize=4)
def _class_knowing(serialized: bytes) -> Any:
    pool = descriptor_pool.DescriptorPool()
    try:
        for file in descriptor_pb2.FileDescriptorSet.FromString(serialized).file:
            pool.Add(file)
        return message_factory.GetMessageClass(
            pool.FindMessageTypeByName("google.protobuf.FileDescriptorProto")
        )
    except (TypeError, KeyError):
        # protobuf's runtime refuses some files that protoc takes; without descriptor.proto are no custom options.
        return descriptor_pb2.FileDescriptorProto


def with_options(proto: descriptor_pb2.FileDescriptorProto, known: descriptor_pb2.FileDescriptorSet) -> Any:
    """A descriptor whose custom options are fields and not bytes: as bytes they may be equal and differ."""
    return _class_knowing(known.SerializeToString()).FromString(proto.SerializeToString())

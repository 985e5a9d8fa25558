"""Values of ten megabytes in JSON, Avro and Protobuf: from a topic to a topic, and those that cannot be decoded to the
dead letters, each as a whole. A topic that takes none so large is said in one line."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pytest

from leafcuttr_spark.pipelines.errors import PipelineError
from leafcuttr_spark.pipelines.model import DeadLetters, Decoding, Encoding
from spark.running.pipes import fill, pipeline, records, run, sink, source
from support import librdkafka
from support.broker_process import BrokerProcess

SIZE = 10_000_000
LARGEST = str(2 * SIZE)
AVRO = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]}
PROTO = 'syntax = "proto3"; message R { string a = 1; }'


def json_values(folder: Path) -> tuple[Decoding, Callable[[str], bytes]]:
    return Decoding("json", columns="a STRING"), lambda text: json.dumps(
        {"a": text}, ensure_ascii=False
    ).encode()


def avro_values(folder: Path) -> tuple[Decoding, Callable[[str], bytes]]:
    (folder / "r.avsc").write_text(json.dumps(AVRO))
    schema = fastavro.parse_schema(AVRO)

    def written(text: str) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, {"a": text})
        return out.getvalue()

    return Decoding("avro", schema=folder / "r.avsc", schema_id="none"), written


def protobuf_values(folder: Path) -> tuple[Decoding, Callable[[str], bytes]]:
    from google.protobuf import wrappers_pb2

    (folder / "r.proto").write_text(PROTO)
    command = [
        sys.executable,
        "-m",
        "grpc_tools.protoc",
        f"-I{folder}",
        f"--descriptor_set_out={folder}/r.set",
    ]
    subprocess.run([*command, "r.proto"], check=True)
    # A message of one text, as R is.
    return (
        Decoding("protobuf", schema=folder / "r.set", schema_id="none"),
        lambda text: wrappers_pb2.StringValue(value=text).SerializeToString(),
    )


FORMATS = {"json": json_values, "avro": avro_values, "protobuf": protobuf_values}


def piped(live: BrokerProcess, folder: Path, wide: str, decoding: Decoding, **out: str) -> Any:
    librdkafka.create(live.address, f"{wide}-in", 1, max_message_bytes=LARGEST)
    librdkafka.create(live.address, f"{wide}-dead", 1, max_message_bytes=LARGEST)
    librdkafka.create(live.address, f"{wide}-out", 1, **out)
    target = sink("large", f"{wide}-out", value=Encoding("text", expression="a"))
    letters = DeadLetters(f"{wide}-dead")
    return pipeline(
        live.address,
        folder,
        {"large": source(f"{wide}-in", value=decoding)},
        [],
        {"out": target},
        letters=letters,
    )


def digests(values: list[bytes | None]) -> list[str]:
    return sorted(hashlib.sha256(value or b"").hexdigest() for value in values)


@pytest.mark.parametrize("name", FORMATS)
def test_to_a_topic_and_to_the_dead_letters(
    spark: Any, live: BrokerProcess, wide: str, tmp_path: Path, name: str
) -> None:
    decoding, written = FORMATS[name](tmp_path)
    pipe = piped(live, tmp_path, wide, decoding, max_message_bytes=LARGEST)
    texts = ["x" * SIZE, "small", "é" * (SIZE // 2)]
    # Cut off, and longer than it says.
    bad = [written("y" * SIZE)[:-2], written("z")[:-1] + b"\xff" * SIZE]
    fill(live.address, f"{wide}-in", [*map(written, texts), *bad], message_max_bytes=2 * SIZE)
    running = run(pipe, spark)
    assert running.dead_letters == 2
    found = records(spark, live.address, f"{wide}-out", 3)
    assert digests([one.value for one in found]) == digests([text.encode() for text in texts])
    dead = records(spark, live.address, f"{wide}-dead", 2)
    assert digests([one.value for one in dead]) == digests([*bad])
    reasons = [one.headers["lc.dead.letter.reason"] for one in dead]
    assert all(
        reason.startswith("value: ") and len(reason) <= 400 and "\n" not in reason for reason in reasons
    )


def test_a_topic_that_takes_none_so_large_is_a_line(
    spark: Any, live: BrokerProcess, wide: str, tmp_path: Path
) -> None:
    decoding, written = json_values(tmp_path)
    pipe = piped(live, tmp_path, wide, decoding)
    fill(live.address, f"{wide}-in", [written("small"), written("x" * SIZE)], message_max_bytes=2 * SIZE)
    with pytest.raises(PipelineError) as raised:
        run(pipe, spark)
    line = str(raised.value)
    assert f"{wide}-out" in line and "\n" not in line and len(line) <= 600, line
    assert records(spark, live.address, f"{wide}-out") == []

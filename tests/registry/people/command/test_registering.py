"""`schemas register`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from leafcuttr_sdk.testing import CommandResult
from support.registry import Asked

Schemas = Callable[..., CommandResult]
PART = '{"type":"record","name":"Part","fields":[{"name":"n","type":"int"}]}'
WHOLE = '{"type":"record","name":"Whole","fields":[{"name":"part","type":"Part"}]}'


def test_a_file_by_its_name(schemas: Schemas, ask: Asked) -> None:
    Path("a.avsc").write_text(PART)
    Path("a.json").write_text('{"type":"object"}')
    Path("a.proto").write_text('syntax = "proto3";\nmessage A {\n  int32 n = 1;\n}\n')
    for file, type in (("a.avsc", None), ("a.json", "JSON"), ("a.proto", "PROTOBUF")):
        done = schemas("register", f"by-{file}", file)
        assert done.status == 0, done.err
        found = ask.get(f"/subjects/by-{file}/versions/1")
        assert (found.get("schemaType"), found["id"]) == (type, int(done.out))
    again = schemas("register", "by-a.avsc", "-", "--type", "avro", "--json", stdin=PART)
    assert json.loads(again.out)["id"] == ask.get("/subjects/by-a.avsc/versions/1")["id"]


def test_references(schemas: Schemas, ask: Asked) -> None:
    Path("part.avsc").write_text(PART)
    Path("whole.avsc").write_text(WHOLE)
    assert schemas("register", "ref-part", "part.avsc").status == 0
    assert schemas("register", "ref-whole", "whole.avsc", "--reference", "Part=ref-part").status == 0
    again = schemas("register", "ref-whole", "whole.avsc", "--reference", "Part=ref-part:1")
    assert again.status == 0
    found = ask.get("/subjects/ref-whole/versions/latest")
    assert found["references"] == [{"name": "Part", "subject": "ref-part", "version": 1}]


@pytest.mark.parametrize(
    "words, status, said",
    [
        (("s", "none.avsc"), 1, "leafcuttr: none.avsc cannot be read: No such file or directory"),
        (("s", "bad.avsc"), 1, "leafcuttr: Invalid schema"),
        (("s", "latin.avsc"), 1, "leafcuttr: latin.avsc is not UTF-8, at byte 0"),
        (("s", "schema.txt"), 2, "schema.txt: which type of schema it is does not follow from its name"),
        (
            ("s", "bad.avsc", "--reference", "x"),
            2,
            "--reference x: write NAME=SUBJECT or NAME=SUBJECT:VERSION",
        ),
        (("s", "bad.avsc", "--reference", "x=y:z"), 2, "--reference x=y:z: 'z' is no version"),
        (("s", "bad.avsc", "--type", "nothing"), 1, "leafcuttr: Invalid schema type NOTHING"),
    ],
)
def test_what_is_refused(schemas: Schemas, words: tuple[str, ...], status: int, said: str) -> None:
    Path("bad.avsc").write_text("{")
    Path("latin.avsc").write_bytes(b"\xff")
    done = schemas("register", *words)
    assert (done.status, done.out) == (status, "")
    assert said in done.err.splitlines()[-1]

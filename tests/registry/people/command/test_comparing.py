"""`schemas check` and `schemas diff`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from leafcuttr_sdk.testing import CommandResult
from support.registry import Asked

Schemas = Callable[..., CommandResult]
OLD = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
NEW = (
    '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"int","default":1}]}'
)
BAD = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"int"}]}'


def test_check_tells_by_its_exit_status(schemas: Schemas, ask: Asked) -> None:
    ask.register("checked", OLD, schemaType="AVRO")
    Path("new.avsc").write_text(NEW)
    Path("bad.avsc").write_text(BAD)
    for words in ((), ("--version", "latest"), ("--version", "1")):
        good, bad = (
            schemas("check", "checked", "new.avsc", *words),
            schemas("check", "checked", "bad.avsc", *words),
        )
        assert (good.status, good.out) == (0, "compatible\n"), good.err
        assert bad.status == 1 and bad.out.startswith("not compatible\n"), bad.err
        assert "READER_FIELD_MISSING_DEFAULT_VALUE" in bad.out and "/fields/1" in bad.out
    answer = json.loads(schemas("check", "checked", "bad.avsc", "--json").out)
    assert answer["is_compatible"] is False and answer["messages"]
    assert ask.get("/subjects/checked/versions") == [1]
    assert schemas("check", "not-there", "bad.avsc").status == 0


def test_check_of_no_schema(schemas: Schemas, ask: Asked) -> None:
    ask.register("unchecked", OLD, schemaType="AVRO")
    Path("none.avsc").write_text('{"type":"nothing"}')
    done = schemas("check", "unchecked", "none.avsc")
    assert done.status == 1
    assert "Invalid schema" in done.out + done.err


def test_diff_says_why_in_both_directions(schemas: Schemas, ask: Asked) -> None:
    ask.register("differs", OLD, schemaType="AVRO")
    ask.register("differs", NEW, schemaType="AVRO")
    Path("bad.avsc").write_text(BAD)
    done = schemas("diff", "differs", "bad.avsc", "--version", "1", "--json")
    (found,) = json.loads(done.out)
    assert done.status == 1
    assert (found["direction"], found["type"]) == ("backward", "READER_FIELD_MISSING_DEFAULT_VALUE")
    assert found["message"] and found["path"].startswith("/fields/1")
    assert schemas("diff", "differs", "bad.avsc", "--version", "1", "--direction", "forward").status == 0
    table = schemas("diff", "differs", "bad.avsc", "--version", "1").out.splitlines()
    assert table[0].split() == ["DIRECTION", "TYPE", "PATH", "OLD", "NEW", "WHY"] and len(table) == 2
    same = schemas("diff", "differs", "2", "--version", "1")
    assert (same.status, same.out) == (0, "no differences that matter\n")


def test_diff_of_two_types(schemas: Schemas, ask: Asked) -> None:
    ask.register("typed", OLD, schemaType="AVRO")
    Path("new.json").write_text("{}")
    done = schemas("diff", "typed", "new.json")
    assert (done.status, done.err) == (
        1,
        "leafcuttr: version 1 is of type AVRO, the new schema of type JSON\n",
    )


def test_diff_with_references(schemas: Schemas, ask: Asked) -> None:
    ask.register(
        "diff-part", '{"type":"record","name":"Part","fields":[{"name":"n","type":"int"}]}', schemaType="AVRO"
    )
    whole = '{"type":"record","name":"Whole","fields":[{"name":"part","type":"Part"}]}'
    reference = {"name": "Part", "subject": "diff-part", "version": 1}
    ask.register("diff-whole", whole, schemaType="AVRO", references=[reference])
    Path("whole.avsc").write_text(whole)
    done = schemas("diff", "diff-whole", "whole.avsc", "--reference", "Part=diff-part:1")
    assert done.status == 0, done.err
    done = schemas("diff", "diff-whole", "whole.avsc")
    assert done.status == 1 and "whole.avsc is no" in done.err


def test_a_text_that_is_no_schema_has_its_line_once(schemas: Schemas, ask: Asked) -> None:
    text = 'syntax = "proto3";\nmessage M {\n  int32 a = 1;\n}\n'
    ask.register("lined", text, schemaType="PROTOBUF")
    Path("bad.proto").write_text(text.replace("int32", "No"))
    done = schemas("diff", "lined", "bad.proto")
    assert done.status == 1 and done.err.endswith(": line 3: No is not defined\n")
    assert done.err.count("line 3") == 1

"""A setting's text to a definition, or the line that says what is wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_filters.definitions.parsing import MOST_CHARACTERS, parse_definition, quoted
from leafcuttr_filters.definitions.table import TYPES


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("tombstones", "on.error", None),
        ("  sample share=0.25  ", "share", 0.25),
        ("sample share=1", "by", "record"),
        ("allow key.regex=^user-\\d+$ key=a,b", "key", ("a", "b")),
        ("mask fields=a,b.c,`d.e`.f", "fields", (("a",), ("b", "c"), ("d.e", "f"))),
        (
            """insert static.field=a static.value='it\\'s \\n a "b" \\\\'""",
            "static.value",
            """it's \\n a "b" \\""",
        ),
        ('insert static.field=a static.value="it\'s \\" b"', "static.value", "it's \" b"),
        ("insert static.field=a static.value=", "static.value", ""),
        ("rate records=5 per=2m", "per", 120_000),
        ("replace renames=a:b,c:d", "renames", {"a": "b", "c": "d"}),
        ("cast spec=int32", "spec", {(): "int32"}),
        ("cast spec=a.b:string,c:boolean", "spec", {("a", "b"): "string", ("c",): "boolean"}),
    ],
)
def test_options(text: str, name: str, expected: object) -> None:
    assert parse_definition(text).values[name] == expected


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "the type of the filter is missing; there are allow, deny, tombstones, "),
        ("maks fields=a", "there is no type of filter 'maks'; did you mean mask?"),
        ("zzz", "there is no type of filter 'zzz'; there are allow, deny,"),
        ("mask field=a", "mask has no option 'field'; did you mean fields?"),
        ("mask fields=a fields=b", "fields is given twice"),
        ("mask fields=a b", "expected option=value, not 'b'; a value with spaces stands in quotes"),
        ("mask fields='a", "the value of fields has no end: \"'a\""),
        ("mask fields='a'b", "the value of fields has no end"),
        ("mask", "one of fields, patterns, regex is needed"),
        ("mask fields=a..b", "fields=a..b: allowed is the name of a field, with dots between"),
        ("mask fields=a.", "fields=a.: allowed is the name of a field"),
        ("mask fields=a,", "fields=a,: allowed is the name of a field"),
        ("mask fields=" + ".".join("a" * 51), "allowed is the name of a field"),
        ("mask fields=a keep=-1", "keep=-1: allowed is a whole number from 0"),
        ("sample", "sample needs share: How many of them"),
        ("sample share=2", "share=2: allowed is a number from 0 to 1, as 0.1"),
        ("sample share=nan", "share=nan: allowed is a number from 0 to 1"),
        ("rate records=0", "records=0: allowed is a whole number from 1"),
        ("rate records=²", "records=²: allowed is a whole number from 1"),
        ("rate records=1 per=0s", "per=0s: allowed is a duration, as 90s, 10m or 7d"),
        ("rate records=1 by=all", "by=all: allowed is topic or key"),
        ("dedupe by=field", "by=field needs field"),
        ("age", "one of max, ahead is needed"),
        ("allow", "one of topic, topic.regex, key, "),
        ("allow header.value=a", "header.value and header.regex need header"),
        ("allow field.value=a key=b", "field.value and field.regex need field"),
        ("allow topic=a,,b", "topic=a,,b: allowed are texts with commas between them"),
        ("allow condition='value >'", "condition=value >: expected a text in quotes"),
        ("allow key.regex=(", "key.regex=(: no regular expression: missing ), unterminated subpattern"),
        ("allow key.regex=(?=a)", "key.regex=(?=a): a regular expression with '(?='"),
        ("mask patterns=card,iban", "patterns=card,iban: allowed are some of email, card, phone, with commas"),
        ("route regex=a replacement=$1", "replacement=$1: the regular expression has no group $1"),
        ("route regex=(?P<a>a) replacement=${b}", "replacement=${b}: the regular expression has no group ${b}"),
        ("mask regex=(a+)+b", "regex=(a+)+b: a regular expression that may take too long in a text of 250"),
        ("mask regex=.*.*.*x", "regex=.*.*.*x: a regular expression that may take too long"),
        ("cast spec=a:int", "spec=a:int: allowed is a type, or fields with types"),
        ("cast spec=int", "spec=int: allowed is a type, or fields with types"),
        ("replace include=", "include=: allowed is the name of a field"),
        ("replace", "one of include, exclude, renames is needed"),
        ("replace renames=a", "renames=a: allowed are pairs of names, as old:new,a:b"),
        ("insert static.field=a", "static.field and static.value belong together"),
        ("insert", "one of static.field, topic.field, timestamp.field, key.field is needed"),
        ("hash fields=a salt=b salt.file=c", "salt and salt.file exclude each other"),
        ("timestamp target.type=string", "target.type=string needs format"),
        ("timestamp target.type=unix format=MMM", "format=MMM: names of months (MMM); allowed are the letters y M d"),
        ("timestamp target.type=unix format=k", "format=k: the letters 'k'; allowed are the letters y M d"),
        ("timestamp target.type=unix format=\"'\"", "format=': a quote without an end"),
        ("route", "either regex with replacement, or topic.format is needed"),
        ("route regex=a topic.format=b", "either regex with replacement, or topic.format is needed"),
        ("route regex=a", "regex and replacement belong together"),
        ("headers fields=a,b headers=c", "fields and headers have to be of the same number"),
        ("python", "python needs path: "),
        ("tombstones when='key ='", "when=key =: '=' has no meaning here"),
        ("tombstones on.error=skip", "on.error=skip: allowed is drop or dead-letter or fail"),
        ("x" * (MOST_CHARACTERS + 1), "a filter of 20001 characters, and it may have 20000"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(text: str, line: str) -> None:
    with pytest.raises(ValueError, match=r"\S") as raised:
        parse_definition(text)
    said = str(raised.value)
    assert line in said and "\n" not in said


@pytest.mark.parametrize("kind", TYPES, ids=lambda one: one.name)
def test_the_example_of_each_type_is_right(kind: object) -> None:
    definition = parse_definition(kind.example)  # type: ignore[attr-defined]
    assert definition.type is kind
    assert definition.on_error == kind.on_error  # type: ignore[attr-defined]


def test_what_becomes_of_errors_can_be_said() -> None:
    assert parse_definition("flatten").on_error == "dead-letter"
    assert parse_definition("mask fields=a").on_error == "fail"
    assert parse_definition("mask fields=a on.error=drop").on_error == "drop"


@given(st.text(max_size=60))
def test_any_text_can_be_quoted(text: str) -> None:
    definition = parse_definition(f"insert static.field=a static.value={quoted(text)} topic.field=t")
    assert definition.values["static.value"] == text
    assert definition.values["topic.field"] == ("t",)


@given(st.text(alphabet="mask filds=.,'\"\\ \t`:", max_size=40))
def test_any_text_is_a_definition_or_one_line(text: str) -> None:
    try:
        parse_definition(text)
    except ValueError as error:
        assert "\n" not in str(error)

"""Every type keeps the contract of record filters, and what becomes of errors is what `on.error` says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import leafcuttr_filters as plugin
from leafcuttr_filters.definitions.table import TYPES, FilterType
from leafcuttr_sdk import DROP, DeadLetter, PluginError, Record, RecordFilterSpec
from leafcuttr_sdk.testing import check_record_filter, fixed_settings
from support.making_filters import NOW, made, of

HARMLESS = [one for one in TYPES if one.name not in ("python", "hash")]


def specs(**filters: str) -> list[RecordFilterSpec]:
    given = {f"lc.record.filter.{name}": text for name, text in filters.items()}
    settings = fixed_settings(plugin.leafcuttr_register_settings(), given)
    return list(plugin.leafcuttr_register_record_filters(settings))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", HARMLESS, ids=lambda one: one.name)
def test_every_type_keeps_the_contract(kind: FilterType) -> None:
    (spec,) = specs(it=f"{kind.example} on.error=dead-letter")
    documents = [
        of(
            {"total": "1", "order": {"id": 5}, "card": {"cvc": 1}, "at": "2026-11-21T08:30:00Z", "type": "x"},
            b"user-1",
        ),
        of({"payload": {"after": {"a": 1}}, "user": {"email": "a@b.se"}, "tenant": {"id": 1}}),
    ]
    check_record_filter(
        spec, plugin=plugin, records=documents, repeatable=kind.name not in ("rate", "dedupe")
    )


def test_what_cannot_be_handled_is_dropped_set_aside_or_raised() -> None:
    record = of(b"no json")
    assert made("flatten on.error=drop").filter(record) is DROP
    assert made("flatten").filter(record) == DeadLetter("flatten: it is no JSON")
    with pytest.raises(PluginError, match="flatten: it is no JSON"):
        made("flatten on.error=fail").filter(record)


CANNOT = {
    "dedupe": ("dedupe by=field field=a", of(b"no json")),
    "extract": ("extract field=a", of(b"no json")),
    "insert": ("insert static.field=a static.value=x", of([1])),
    "replace": ("replace include=a", of(b"no json")),
    "mask": ("mask fields=a", of(b"no json")),
    "hash": ("hash fields=a", of(b"no json")),
    "flatten": ("flatten", of(b"no json")),
    "cast": ("cast spec=a:int8", of({"a": "x"})),
    "timestamp": ("timestamp field=a target.type=unix format=yyyy", of({"a": "x"})),
    "route": ("route topic.format=${topic}-${timestamp}", of({}, timestamp=-1)),
    "headers": ("headers fields=a headers=h", of(b"no json")),
    "python": ("python path={file}:raises", of({})),
}
"""A definition of each type, and a record that it cannot handle."""
ALWAYS = {"allow", "deny", "tombstones", "sample", "rate", "age"}
"""These have a verdict on every record."""


def test_every_type_is_one_that_may_fail_or_one_that_does_not() -> None:
    assert {*CANNOT, *ALWAYS} == {one.name for one in TYPES} and not ALWAYS & CANNOT.keys()


@pytest.mark.parametrize("kind", CANNOT)
@pytest.mark.parametrize("policy", ["drop", "dead-letter", "fail"])
def test_the_policy_counts_for_every_type(kind: str, policy: str, tmp_path: Path) -> None:
    text, record = CANNOT[kind]
    file = tmp_path / "raising.py"
    file.write_text("def raises(value):\n    raise ValueError('not this one')\n")
    text = text.replace("{file}", str(file))
    judge = made(f"{text} on.error={policy}").filter
    if policy == "drop":
        assert judge(record) is DROP
    elif policy == "dead-letter":
        verdict = judge(record)
        assert isinstance(verdict, DeadLetter) and verdict.reason.startswith(f"{kind}: ")
    else:
        with pytest.raises(PluginError, match=f"^{kind}: "):
            judge(record)


@pytest.mark.parametrize("kind", [one for one in TYPES if one.name in ALWAYS], ids=lambda one: one.name)
def test_these_fail_with_no_record(kind: FilterType) -> None:
    for value in (b"no json", b"\xff", None, [1], {"level": {}, "order": [], "country": None}):
        verdict: Any = made(f"{kind.example} on.error=fail").filter(of(value, b"\xff"))
        assert isinstance(verdict, Record) or verdict is DROP


def test_deep_json_is_an_error_and_not_the_end() -> None:
    deep = b'{"a":' * 900 + b"1" + b"}" * 900
    for text in ("mask patterns=card on.error=dead-letter", "flatten", "cast spec=a:int8", "extract field=a"):
        made(text).filter(of(deep))
    very = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    assert made("flatten").filter(of(very)) == DeadLetter("flatten: it is no JSON")


def test_when_is_asked_before_the_filter() -> None:
    text = 'cast spec=total:float64 when=\'value.total ~ "^[0-9]+$" and topic == "orders"\''
    assert json.loads(made(text).filter(of({"total": "5"})).value) == {"total": 5.0}  # type: ignore[union-attr]
    for other in ({"total": "x"}, {"total": 5}, b"no json", None):
        record = of(other)
        assert made(text).filter(record) is record
    record = of({"total": "5"})
    assert made(text, topic="other").filter(record) is record


def test_a_filter_that_forgets_forgets_behind_a_condition_too() -> None:
    dedupe: Any = made("dedupe when='value.n >= 0'")
    record = of({"n": 1}, b"k")
    assert dedupe.filter(record) is record and dedupe.filter(record) is DROP
    dedupe.forget()
    assert dedupe.filter(record) is record
    assert not hasattr(made("tombstones"), "forget")


def test_a_chain_decodes_a_value_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from leafcuttr_filters.documents import json_values

    texts: list[str] = []

    def decode(text: str) -> Any:
        texts.append(text)
        return json.loads(text)

    monkeypatch.setattr(json_values, "_decode", decode)
    # What other tests have shown it decides whether documents are kept.
    monkeypatch.setattr(json_values, "_kept", json_values._Kept())
    chain = [
        made(text).filter
        for text in (
            "allow field=a", "deny condition='value.a == 2'", "cast spec=a:string", "mask fields=b replacement=x",
            "replace renames=a:c", "dedupe by=field field=c", "flatten", "headers fields=c headers=c",
        )
    ]  # fmt: skip
    records: list[Any] = [of({"a": number, "b": "y", "d": {"e": number}}) for number in (1, 3, 4)]
    for judge in chain:
        records = [judge(one) for one in records]
    assert [json.loads(one.value) for one in records] == [
        {"c": str(number), "b": "x", "d.e": number} for number in (1, 3, 4)
    ]
    assert len(texts) == 3


@pytest.mark.parametrize(
    "text",
    ["allow key=a", "allow key.regex=a", "allow header=a", "sample share=0.5", "rate records=5", "dedupe", "age max=1h",
     "tombstones", "deny topic.regex=x", "route regex=orders replacement=x", "allow value.regex=a"],
)  # fmt: skip
def test_what_needs_no_document_decodes_none(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from leafcuttr_filters.documents import json_values

    def decode(_: str) -> Any:
        raise AssertionError("decoded")

    monkeypatch.setattr(json_values, "_decode", decode)
    # What other tests have shown it decides whether documents are kept.
    monkeypatch.setattr(json_values, "_kept", json_values._Kept())
    made(text).filter(of({"a": 1}, b"k", timestamp=NOW))

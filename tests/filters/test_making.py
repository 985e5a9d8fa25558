"""Every type keeps the contract of record filters, and what becomes of errors is what `on.error` says."""

from __future__ import annotations

import json
from typing import Any

import pytest

import leafcuttr_filters as plugin
from leafcuttr_filters.definitions.table import TYPES, FilterType
from leafcuttr_sdk import DROP, DeadLetter, PluginError, RecordFilterSpec
from leafcuttr_sdk.testing import check_record_filter, fixed_settings
from support.making_filters import NOW, made, of

HARMLESS = [one for one in TYPES if one.name not in ("python", "hash")]


def specs(**filters: str) -> list[RecordFilterSpec]:
    given = {f"lc.record.filter.{name}": text for name, text in filters.items()}
    settings = fixed_settings(plugin.leafcuttr_register_settings(), given)
    return list(plugin.leafcuttr_register_record_filters(settings))


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

"""What bodies mean."""

from collections.abc import Mapping
from typing import Any

from leafcuttr_registry.storage.values import read_reference
from leafcuttr_registry.subjects.content import AVRO
from leafcuttr_registry.subjects.metadata import RuleError, RuleSet, check_rules, read_metadata, read_rules
from leafcuttr_registry.subjects.refusals import invalid_rules, invalid_schema
from leafcuttr_registry.subjects.registering import Registration
from leafcuttr_sdk.web.errors import ApiError


def registration(body: Mapping[str, Any]) -> Registration:
    """Raises ApiError 400 for a member of a wrong type, Refusal 42210 for rules that are refused."""
    try:
        references = _list(body, "references")
        type = _text(body, "schemaType")
        return Registration(
            type=AVRO if type is None else type,
            text=_text(body, "schema") or "",
            references=tuple(read_reference(each) for each in references),
            metadata=read_metadata(body.get("metadata")),
            rules=_rules(body, "ruleSet"),
            version=_whole(body, "version", 0),
            id=_whole(body, "id", -1),
        )
    except ValueError as error:
        raise ApiError(400, f"{error}.") from None


def needs_schema(given: Registration, *, previous: bool) -> None:
    """Raises Refusal 42201 where there is none; `previous`: that of the version before may be meant."""
    if not given.text.strip() and not (previous and (given.metadata is not None or given.rules is not None)):
        raise invalid_schema("Empty schema")


def _rules(body: Mapping[str, Any], name: str) -> RuleSet | None:
    rules = read_rules(body.get(name))
    try:
        check_rules(rules)
    except RuleError as error:
        raise invalid_rules(str(error)) from None
    return rules


def rules(body: Mapping[str, Any], name: str) -> RuleSet | None:
    """Raises ApiError 400, Refusal 42210."""
    try:
        return _rules(body, name)
    except ValueError as error:
        raise ApiError(400, f"{error}.") from None


def texts(body: Mapping[str, Any], name: str) -> list[str] | None:
    """Raises ApiError 400."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ApiError(400, f"{name} has to be an array of texts.")
    return value


def _text(body: Mapping[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{name} has to be a text")
    return value


def _list(body: Mapping[str, Any], name: str) -> list[Any]:
    value = body.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValueError(f"{name} has to be an array")
    return value


def _whole(body: Mapping[str, Any], name: str, default: int) -> int:
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not -1 <= value < 2**31:
        raise ValueError(f"{name} has to be a whole number")
    return value

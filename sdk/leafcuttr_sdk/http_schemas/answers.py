"""What a registry's answers mean: JSON as schemas and versions, and its error codes as the errors of the contract. No
I/O.

The codes are Confluent's: 404xx there is none, 409 and 409xx not compatible, 42201 no schema of the format, all other
422xx, 5xx and the like are refusals for another reason.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeGuard

from leafcuttr_sdk.http_schemas.exchange import Answer, NoAnswer
from leafcuttr_sdk.schemas import (
    IncompatibleSchemaError,
    RegisteredSchema,
    SchemaError,
    SchemaNotFoundError,
    SchemaProviderError,
    SchemaReference,
)

RETRIED: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed."""
_AVRO: Final = "AVRO"
_INVALID_SCHEMA: Final = 42201
_CONFLICT: Final = 409
_LONGEST: Final = 1000
_MOST_REFERENCES: Final = 1000


def checked(answer: Answer, address: object) -> Any:
    """The body of an answer that is no refusal. Raises the errors of `leafcuttr_sdk.schemas`; NoAnswer where what
    answers is no registry."""
    if 200 <= answer.status < 300:
        if answer.body is None:
            raise NoAnswer(f"what answers at {address} is no schema registry: it sends no JSON")
        return answer.body
    body: Mapping[str, Any] = answer.body if _is_object(answer.body) else {}
    code, message = body.get("error_code"), body.get("message")
    if not isinstance(code, int) or isinstance(code, bool):
        code = answer.status
    line = _line(message) if isinstance(message, str) and message.strip() else ""
    said = line or f"status {answer.status}"
    if _family(code) == 404 and "error_code" in body:
        raise SchemaNotFoundError(said)
    if _family(code) == _CONFLICT:
        raise IncompatibleSchemaError(said)
    if code == _INVALID_SCHEMA:
        raise SchemaError(said)
    raise SchemaProviderError(f"the schema registry at {address} refuses: {said} (error {code})")


def _family(code: int) -> int:
    return code // 100 if code > 999 else code


def schema(body: Any, address: object, *, id: int | None = None) -> RegisteredSchema:
    """Of an answer that has one; `id` where it is known and not in it. Raises NoAnswer."""
    found = fields(body, address)
    known = found.get("id", id)
    text, format, guid = found.get("schema"), found.get("schemaType") or _AVRO, found.get("guid") or ""
    if (
        not isinstance(known, int)
        or not isinstance(text, str)
        or not isinstance(format, str)
        or not isinstance(guid, str)
    ):
        raise _strange(address, "a schema lacks its id or text")
    return RegisteredSchema(known, guid, format, text, _references(found.get("references"), address))


def place(body: Any, address: object) -> tuple[str, int]:
    """Subject and version. Raises NoAnswer."""
    found = fields(body, address)
    subject, version = found.get("subject"), found.get("version")
    if not isinstance(subject, str) or not isinstance(version, int):
        raise _strange(address, "a version lacks its subject or number")
    return subject, version


def id_of(body: Any, address: object) -> int:
    """Raises NoAnswer."""
    found = fields(body, address).get("id")
    if not isinstance(found, int):
        raise _strange(address, "what is registered has no id")
    return found


def id_in_context(body: Any, context: str, address: object) -> int | None:
    """Of the ids of a guid the one in this context, else in the default one, else any; None without one. Raises
    NoAnswer."""
    if not _is_list(body):
        raise _strange(address, "ids are no list")
    found: dict[str, int] = {}
    for each in body:
        one = fields(each, address)
        if isinstance(one.get("id"), int) and isinstance(one.get("context"), str):
            found[one["context"]] = one["id"]
    return found.get(context, found.get(".", next(iter(found.values()), None)))


def asked(format: str, text: str, references: Sequence[SchemaReference]) -> dict[str, object]:
    """The body of a request that has a schema."""
    body: dict[str, object] = {"schema": text}
    if format != _AVRO:
        body["schemaType"] = format
    if references:
        body["references"] = [each._asdict() for each in references]
    return body


def fields(body: Any, address: object) -> Mapping[str, Any]:
    """Raises NoAnswer."""
    if not _is_object(body):
        raise _strange(address, "it sends no object")
    return body


def _references(given: Any, address: object) -> tuple[SchemaReference, ...]:
    if given is None:
        return ()
    if not _is_list(given) or len(given) > _MOST_REFERENCES:
        raise _strange(address, f"references are no list of at most {_MOST_REFERENCES}")
    found: list[SchemaReference] = []
    for each in given:
        one = fields(each, address)
        name, subject, version = one.get("name"), one.get("subject"), one.get("version")
        if not isinstance(name, str) or not isinstance(subject, str) or not isinstance(version, int):
            raise _strange(address, "a reference lacks its name, subject or version")
        found.append(SchemaReference(name, subject, version))
    return tuple(found)


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _is_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, dict)


def _strange(address: object, what: str) -> NoAnswer:
    return NoAnswer(f"what answers at {address} is no schema registry: {what}")


def _line(text: str) -> str:
    return " ".join(text[: 4 * _LONGEST].split())[:_LONGEST]

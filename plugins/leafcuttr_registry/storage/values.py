"""Values of `_schemas`, as Confluent's registry writes and reads them: members that are empty are left out."""

import base64
import binascii
from typing import Any

from leafcuttr_registry.storage.jackson import read, write
from leafcuttr_registry.subjects.config import Config, read_stored
from leafcuttr_registry.subjects.content import AVRO, Content
from leafcuttr_registry.subjects.events import (
    AssociationKey,
    AssociationValue,
    ClearSubjectKey,
    ConfigKey,
    ContextKey,
    DeletedUpTo,
    DeleteSubjectKey,
    Event,
    Key,
    ModeKey,
    NoopKey,
    OtherKey,
    Present,
    SchemaKey,
    SchemaValue,
    Value,
)
from leafcuttr_registry.subjects.metadata import read_metadata, read_rules
from leafcuttr_registry.subjects.scopes import MODES
from leafcuttr_sdk.schemas import SchemaReference


def encode(event: Event) -> bytes | None:
    """The bytes of a value; None for a tombstone."""
    key, value = event
    if value is None:
        return None
    members: dict[str, Any] = {}
    subject = getattr(key, "subject", None)
    if subject is not None:
        members["subject"] = subject
    if isinstance(key, SchemaKey) and isinstance(value, SchemaValue):
        members |= {
            "version": key.version,
            "id": value.id,
            **_content(value.content),
            "deleted": value.deleted,
        }
    elif isinstance(key, AssociationKey) and isinstance(value, AssociationValue):
        members = _association(key, value)
    elif isinstance(value, Config):
        members |= value.members
    elif isinstance(value, str):
        members["mode"] = value
    elif isinstance(value, DeletedUpTo):
        members["version"] = value.version
    elif isinstance(key, ContextKey):
        members = {"tenant": key.tenant, "context": key.context}
    return write(members).encode()


def _association(key: AssociationKey, value: AssociationValue) -> dict[str, Any]:
    created = {} if value.created is None else {"createTs": value.created}
    return {
        "subject": key.subject,
        "guid": value.guid,
        "tenant": key.tenant,
        "resourceName": key.name,
        "resourceNamespace": key.namespace,
        "resourceId": value.resource,
        "resourceType": key.kind,
        "associationType": key.part,
        "lifecycle": value.lifecycle,
        "frozen": value.frozen,
        **created,
    }


def _content(content: Content) -> dict[str, Any]:
    members: dict[str, Any] = {"schemaType": content.type}
    if content.references:
        members["references"] = [each._asdict() for each in content.references]
    if content.metadata is not None:
        members["metadata"] = content.metadata
    if content.rules is not None:
        members["ruleSet"] = content.rules
    return {**members, "schema": content.text}


def decode(key: Key, data: bytes | None) -> Value:
    """Raises ValueError for what is no value of this key. Karapace writes tombstones as empty values."""
    if not data:
        return None
    if isinstance(key, NoopKey | OtherKey):
        return Present()
    members = read(data)
    if not isinstance(members, dict):
        raise ValueError("it is no object")
    if isinstance(key, SchemaKey):
        return _schema(members)
    if isinstance(key, ConfigKey):
        return read_stored(members)
    if isinstance(key, AssociationKey):
        return _read_association(members)
    if isinstance(key, ModeKey):
        mode = members.get("mode")
        if mode not in MODES:
            raise ValueError(f"its mode is {mode!r}")
        return str(mode)
    if isinstance(key, DeleteSubjectKey):
        return DeletedUpTo(_whole(members, "version"))
    assert isinstance(key, ClearSubjectKey | ContextKey)
    return Present()


def _read_association(members: dict[str, Any]) -> AssociationValue:
    guid, resource, lifecycle = members.get("guid"), members.get("resourceId") or "", members.get("lifecycle")
    created = members.get("createTs")
    if not isinstance(guid, str) or not isinstance(resource, str) or lifecycle not in ("STRONG", "WEAK"):
        raise ValueError("it has no guid or no lifecycle")
    if isinstance(created, bool) or not isinstance(created, int | None):
        raise ValueError("its createTs is no number")
    return AssociationValue(guid, resource, lifecycle, members.get("frozen") is True, created)


def _schema(members: dict[str, Any]) -> SchemaValue:
    text, kind = members.get("schema"), members.get("schemaType") or AVRO
    if not isinstance(text, str) or not isinstance(kind, str):
        raise ValueError("it has no schema")
    given = members.get("references") or []
    if not isinstance(given, list):
        raise ValueError("its references are no array")
    references = tuple(read_reference(each) for each in given)
    metadata, rules = read_metadata(members.get("metadata")), read_rules(members.get("ruleSet"))
    content = Content(kind, text, references, metadata, rules)
    if members.get("md5") is not None:
        content = _with_digest(content, members["md5"])
    return SchemaValue(_whole(members, "id"), content, members.get("deleted") is True)


def read_reference(value: object) -> SchemaReference:
    """Raises ValueError."""
    if not isinstance(value, dict):
        raise ValueError("a reference is no object")
    name, subject, version = value.get("name"), value.get("subject"), value.get("version")
    if not isinstance(name, str) or not isinstance(subject, str):
        raise ValueError("a reference has no name or no subject")
    if not isinstance(version, int) or isinstance(version, bool) or not -1 <= version < 2**31:
        raise ValueError(f"the reference {name!r} has no version")
    return SchemaReference(name, subject, version)


def _with_digest(content: Content, encoded: object) -> Content:
    """Where metadata are encrypted, only the digest says which schema it is."""
    try:
        digest = base64.b64decode(str(encoded), validate=True)
    except binascii.Error:
        return content
    if len(digest) == 16:
        content.set_digest(digest)
    return content


def _whole(members: dict[str, Any], name: str) -> int:
    value = members.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
        raise ValueError(f"its {name} is {value!r}")
    return value

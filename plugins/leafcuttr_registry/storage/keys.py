"""Keys of `_schemas`: byte for byte as Confluent's registry writes them, since compaction compares bytes. A key whose
members stand in another order, as Karapace once wrote them, is read as the same one."""

from typing import Any, Final

from leafcuttr_registry.storage.jackson import read, write
from leafcuttr_registry.subjects.events import (
    AssociationKey,
    ClearSubjectKey,
    ConfigKey,
    ContextKey,
    DeleteSubjectKey,
    Key,
    ModeKey,
    NoopKey,
    OtherKey,
    SchemaKey,
)

_OF_SUBJECTS: Final[dict[str, type[ConfigKey] | type[ModeKey] | type[ClearSubjectKey]]] = {
    "CONFIG": ConfigKey,
    "MODE": ModeKey,
    "CLEAR_SUBJECT": ClearSubjectKey,
}
_NAMES: Final = {kind: name for name, kind in _OF_SUBJECTS.items()}
_ASSOCIATION: Final = (
    *("tenant", "resourceName", "resourceNamespace", "resourceType", "associationType", "subject"),
)
_HIGHEST: Final = 2**31 - 1
_MAGIC: Final = 1
"""Of schemas; other keys have 0. Records with another one come from a format that is not known."""


class NotAKeyError(ValueError):
    """Bytes that are no key."""


def encode(key: Key) -> bytes:
    """The bytes of a key. A name that is None is left out."""
    if isinstance(key, SchemaKey):
        return f'{{"keytype":"SCHEMA","subject":{write(key.subject)},"version":{key.version},"magic":1}}'.encode()
    if isinstance(key, ContextKey):
        return f'{{"keytype":"CONTEXT","tenant":{write(key.tenant)},"context":{write(key.context)},"magic":0}}'.encode()
    if isinstance(key, AssociationKey):
        return write({"keytype": "ASSOC", **dict(zip(_ASSOCIATION, key, strict=True)), "magic": 0}).encode()
    members: dict[str, Any] = {"keytype": key.keytype if isinstance(key, OtherKey) else "NOOP"}
    if isinstance(key, DeleteSubjectKey):
        members = {"keytype": "DELETE_SUBJECT", "subject": key.subject}
    elif isinstance(key, ConfigKey | ModeKey | ClearSubjectKey):
        members = {"keytype": _NAMES[type(key)]}
        if key.subject is not None:
            members["subject"] = key.subject
    return write({**members, "magic": 0}).encode()


def decode(data: bytes) -> Key:
    """Raises NotAKeyError for bytes that are none; a type that is not known is an OtherKey."""
    try:
        members = read(data)
    except ValueError:
        raise NotAKeyError("its key is no JSON") from None
    if not isinstance(members, dict) or not isinstance(members.get("keytype"), str):
        raise NotAKeyError("its key has no keytype")
    kind = members["keytype"]
    if kind == "SCHEMA":
        return _schema(members)
    if kind == "NOOP":
        return NoopKey()
    subject = members.get("subject")
    if subject is not None and not isinstance(subject, str):
        raise NotAKeyError("its subject is no text")
    if kind in _OF_SUBJECTS:
        return _OF_SUBJECTS[kind](subject or None)
    if kind == "DELETE_SUBJECT":
        if subject is None:
            raise NotAKeyError("it has no subject")
        return DeleteSubjectKey(subject)
    if kind == "CONTEXT" and isinstance(members.get("context"), str):
        return ContextKey(str(members.get("tenant") or "default"), members["context"])
    if kind == "ASSOC" and all(isinstance(members.get(name), str) for name in _ASSOCIATION):
        return AssociationKey(*(members[name] for name in _ASSOCIATION))
    return OtherKey(kind)


def _schema(members: dict[str, Any]) -> Key:
    subject, version, magic = members.get("subject"), members.get("version"), members.get("magic", 1)
    if not isinstance(subject, str) or not isinstance(version, int) or isinstance(version, bool):
        raise NotAKeyError("it has no subject or no version")
    if not 0 < version <= _HIGHEST:
        raise NotAKeyError(f"its version {str(version)[:20]} is none")
    if magic not in (0, _MAGIC):
        return OtherKey("SCHEMA")
    return SchemaKey(subject, version)

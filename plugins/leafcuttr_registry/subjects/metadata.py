"""Metadata and rule sets of schemas: read from JSON, merged with the defaults and overrides of a config, and hashed for
guids as Confluent's registry does.

What is read here has one form: sets and maps are sorted, empty members are left out, and rules have their defaults.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

Update: TypeAlias = Callable[[bytes], None]
Metadata: TypeAlias = dict[str, Any]
RuleSet: TypeAlias = dict[str, Any]

VERSION: Final = "confluent:version"
"""The property of metadata in which a registration that names a version has it."""
_RESERVED: Final = "confluent:reserved"
"""The property of metadata that names fields which the schema has not to have, with commas between them."""
_PHASES: Final = {
    "migrationRules": (
        frozenset({"UPGRADE", "DOWNGRADE", "UPDOWN"}),
        "Migration rules can only be UPGRADE, DOWNGRADE, UPDOWN",
    ),
    "domainRules": (
        frozenset({"WRITE", "READ", "WRITEREAD"}),
        "Domain rules can only be WRITE, READ, WRITEREAD",
    ),
    "encodingRules": (
        frozenset({"WRITE", "READ", "WRITEREAD"}),
        "Encoding rules can only be WRITE, READ, WRITEREAD",
    ),
}
_MODES: Final = frozenset({"UPGRADE", "DOWNGRADE", "UPDOWN", "WRITE", "READ", "WRITEREAD"})
_KINDS: Final = frozenset({"TRANSFORM", "CONDITION"})
_LONGEST_NAME: Final = 256


class RuleError(ValueError):
    """A rule set that is none."""


def read_metadata(value: object) -> Metadata | None:
    """Raises ValueError."""
    if value is None:
        return None
    members = _object(value, "metadata")
    tags = {
        str(key): sorted(set(_texts(each, f"metadata.tags.{key}")))
        for key, each in sorted(_object(members.get("tags"), "metadata.tags").items())
    }
    properties = {
        str(key): _text(each, f"metadata.properties.{key}")
        for key, each in sorted(_object(members.get("properties"), "metadata.properties").items())
    }
    sensitive = sorted(set(_texts(members.get("sensitive"), "metadata.sensitive")))
    found = {"tags": tags, "properties": properties, "sensitive": sensitive}
    return {key: each for key, each in found.items() if each}


def read_rules(value: object) -> RuleSet | None:
    """Raises ValueError."""
    if value is None:
        return None
    members = _object(value, "ruleSet")
    found: RuleSet = {}
    for phase in _PHASES:
        rules = members.get(phase)
        if rules is not None and not isinstance(rules, list):
            raise ValueError(f"ruleSet.{phase} has to be an array")
        if rules:
            found[phase] = [_rule(rule, f"ruleSet.{phase}[{at}]") for at, rule in enumerate(rules)]
    if members.get("enableAt") is not None:
        found["enableAt"] = _text(members["enableAt"], "ruleSet.enableAt")
    return found


def check_rules(rules: RuleSet | None) -> None:
    """Raises RuleError for rules that a registry refuses: no name, no type, one name twice, a mode of another phase."""
    names: set[str] = set()
    for phase, (modes, refusal) in _PHASES.items():
        for rule in (rules or {}).get(phase, ()):
            name = rule.get("name")
            if name in names:
                raise RuleError(f"Found rule with duplicate name '{name}'")
            _check_name(name)
            names.add(name)
            if rule.get("type") is None:
                raise RuleError("Missing rule type")
            for action in (rule.get("onSuccess"), rule.get("onFailure")):
                if action and "," in action and rule["mode"] not in ("WRITEREAD", "UPDOWN"):
                    raise RuleError("Multiple actions only valid with WRITEREAD and UPDOWN")
            if rule["mode"] not in modes:
                raise RuleError(refusal)


def merge_metadata(old: Metadata | None, new: Metadata | None) -> Metadata | None:
    """Both, where they differ the new one."""
    if old is None or new is None:
        return new if old is None else old
    merged: Metadata = {}
    for part in ("tags", "properties"):
        merged[part] = dict(sorted({**old.get(part, {}), **new.get(part, {})}.items()))
    merged["sensitive"] = sorted({*old.get("sensitive", ()), *new.get("sensitive", ())})
    return {key: each for key, each in merged.items() if each}


def merge_rules(old: RuleSet | None, new: RuleSet | None) -> RuleSet | None:
    """Both, of rules with one name the new one."""
    if old is None or new is None:
        return new if old is None else old
    merged: RuleSet = {}
    for phase in _PHASES:
        added = new.get(phase, [])
        names = {rule.get("name") for rule in added}
        rules = [rule for rule in old.get(phase, []) if rule.get("name") not in names] + added
        if rules:
            merged[phase] = rules
    enable_at = new.get("enableAt") or old.get("enableAt")
    return {**merged, "enableAt": enable_at} if enable_at else merged


def without_rules(rules: RuleSet | None, names: list[str]) -> RuleSet | None:
    """All but those with these names."""
    if rules is None:
        return None
    kept = {
        phase: [rule for rule in rules.get(phase, ()) if rule.get("name") not in names] for phase in _PHASES
    }
    found: RuleSet = {phase: left for phase, left in kept.items() if left}
    return {**found, "enableAt": rules["enableAt"]} if "enableAt" in rules else found


def has_rule_of_type(rules: RuleSet | None, kind: str) -> bool:
    """Whether one of the rules has this type."""
    return any(rule.get("type") == kind for phase in _PHASES for rule in (rules or {}).get(phase, ()))


def with_version(metadata: Metadata | None, version: int) -> Metadata:
    """With the version as a property."""
    merged = merge_metadata(metadata or {}, {"properties": {VERSION: str(version)}})
    assert merged is not None
    return merged


def without_version(metadata: Metadata | None) -> Metadata | None:
    """Without that property; None if nothing else is there."""
    if metadata is None or VERSION not in metadata.get("properties", {}):
        return metadata
    properties = {key: each for key, each in metadata["properties"].items() if key != VERSION}
    left = {key: each for key, each in {**metadata, "properties": properties}.items() if each}
    return left or None


def reserved_fields(metadata: Metadata | None) -> set[str]:
    """The names of fields that the metadata reserve."""
    names = (metadata or {}).get("properties", {}).get(_RESERVED, "").split(",")
    return {name.strip() for name in names} - {""}


def hash_metadata(metadata: Metadata, update: Update) -> None:
    """As Confluent's `Metadata.updateHash`: tags, properties, sensitive names, each in order."""
    for key, values in metadata.get("tags", {}).items():
        update(key.encode())
        for value in values:
            update(value.encode())
    for key, value in metadata.get("properties", {}).items():
        update(key.encode())
        update(value.encode())
    for name in metadata.get("sensitive", ()):
        update(name.encode())


def hash_rules(rules: RuleSet, update: Update) -> None:
    """As Confluent's `RuleSet.updateHash`."""
    for phase in _PHASES:
        for rule in rules.get(phase, ()):
            for part in _parts_of(rule):
                update(part)
    if "enableAt" in rules:
        update(rules["enableAt"].encode())


def _parts_of(rule: Mapping[str, Any]) -> Iterator[bytes]:
    for name in ("name", "doc", "kind", "mode", "type"):
        if name in rule:
            yield rule[name].encode()
    for tag in rule.get("tags", ()):
        yield tag.encode()
    for key, value in rule.get("params", {}).items():
        yield key.encode()
        yield value.encode()
    for name in ("expr", "onSuccess", "onFailure"):
        if name in rule:
            yield rule[name].encode()
    if rule.get("disabled"):
        yield b"\1"


def _rule(value: object, where: str) -> dict[str, Any]:
    members = _object(value, where)
    rule: dict[str, Any] = {}
    for name in ("name", "doc", "kind", "mode", "type"):
        given = members.get(name)
        if given is None:
            given = {"kind": "TRANSFORM", "mode": "WRITEREAD"}.get(name)
        if given is not None:
            rule[name] = _text(given, f"{where}.{name}")
    if rule["kind"] not in _KINDS:
        raise ValueError(f"{where}.kind is {rule['kind']!r}: allowed are {', '.join(sorted(_KINDS))}")
    if rule["mode"] not in _MODES:
        raise ValueError(f"{where}.mode is {rule['mode']!r}: allowed are {', '.join(sorted(_MODES))}")
    if tags := sorted(set(_texts(members.get("tags"), f"{where}.tags"))):
        rule["tags"] = tags
    if params := _object(members.get("params"), f"{where}.params"):
        rule["params"] = {key: _text(each, f"{where}.params.{key}") for key, each in sorted(params.items())}
    for name in ("expr", "onSuccess", "onFailure"):
        if members.get(name) is not None:
            rule[name] = _text(members[name], f"{where}.{name}")
    disabled = members.get("disabled")
    if disabled is not None and not isinstance(disabled, bool):
        raise ValueError(f"{where}.disabled has to be true or false")
    rule["disabled"] = bool(disabled)
    return rule


def _check_name(name: str | None) -> None:
    if name is None:
        raise RuleError("Missing rule name")
    if not name:
        raise RuleError("Empty rule name")
    if len(name) > _LONGEST_NAME:
        raise RuleError("Rule name too long")
    if not (name[0].isalpha() or name[0] == "_"):
        raise RuleError(f"Illegal initial character in rule name: {name}")
    if not all(letter.isalnum() or letter in "_-" for letter in name):
        raise RuleError(f"Illegal character in rule name: {name}")


def _object(value: object, where: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"{where} has to be an object")
    return value


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{where} has to be a text")
    return value


def _texts(value: object, where: str) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValueError(f"{where} has to be an array of texts")
    return [_text(each, where) for each in value]

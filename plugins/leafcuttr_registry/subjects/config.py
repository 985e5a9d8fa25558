"""The config of a subject, a context or the registry: what is set in it, and how an update changes it."""

from collections.abc import Mapping
from typing import Any, Final

from leafcuttr_registry.subjects.metadata import check_rules, read_metadata, read_rules

LEVELS: Final = (
    "NONE",
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
)
DEFAULT_LEVEL: Final = "BACKWARD"
LEVEL: Final = "compatibilityLevel"
"""What it is called in answers and in `_schemas`."""
GIVEN_LEVEL: Final = "compatibility"
"""What requests call it."""
_TEXTS: Final = ("alias", "aliasForDeks")
_FLAGS: Final = ("normalize", "validateFields", "validateNewSchemas", "validateRules")
_MORE_TEXTS: Final = ("compatibilityPolicy", "compatibilityGroup")
METADATA: Final = ("defaultMetadata", "overrideMetadata")
RULES: Final = ("defaultRuleSet", "overrideRuleSet")
POLICY: Final = "compatibilityPolicy"
LENIENT: Final = "LENIENT"
POLICIES: Final = ("STRICT", LENIENT)
"""Confluent's LOGICAL, which also asks for what Flink and Iceberg can do with a schema, is not among them."""
VALIDATE_FIELDS: Final = "validateFields"
_ORDER: Final = (*_TEXTS, *_FLAGS, LEVEL, *_MORE_TEXTS, *METADATA, *RULES)
_INHERITED: Final = (*_FLAGS, *_MORE_TEXTS)
"""What a subject that has a config takes from the global one where it says nothing."""


class LevelError(ValueError):
    """A compatibility level that is none."""


class Config:
    """Never changed. `members` has what is set, in Confluent's order and by its names."""

    __slots__ = ("members",)

    def __init__(self, members: Mapping[str, Any]) -> None:
        self.members: Final = {
            name: members[name] for name in _ORDER if members.get(name) not in (None, "", {})
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self.members == other.members

    def __hash__(self) -> int:
        return hash(tuple(self.members))

    def __getitem__(self, name: str) -> Any:
        return self.members.get(name)

    @property
    def level(self) -> str:
        level: str = self.members.get(LEVEL, DEFAULT_LEVEL)
        return level

    @property
    def adds(self) -> bool:
        """Whether it adds metadata or rules to schemas."""
        return any(name in self.members for name in (*METADATA, *RULES))

    def updated(self, changes: Mapping[str, Any]) -> "Config":
        """With what `read_update` gave; None takes a member away."""
        return Config({**self.members, **changes})

    def over(self, other: "Config") -> "Config":
        """As it holds for a subject: with what it inherits."""
        inherited: dict[str, Any] = {
            name: other.members[name] for name in _INHERITED if name in other.members
        }
        return Config({**inherited, **self.members})

    def with_level(self) -> "Config":
        """With the default level if none is set."""
        return self if LEVEL in self.members else Config({**self.members, LEVEL: DEFAULT_LEVEL})


DEFAULT: Final = Config({LEVEL: DEFAULT_LEVEL})


def read_update(body: Mapping[str, Any]) -> dict[str, Any]:
    """What a request sets, by the names of the state. Raises LevelError, RuleError, ValueError."""
    changes: dict[str, Any] = {}
    for name in (*_TEXTS, *_MORE_TEXTS):
        if name in body:
            changes[name] = _of(body[name], str, name)
    policy = changes.get(POLICY)
    if policy is not None and policy.upper() not in POLICIES:
        raise ValueError(f"{POLICY} is {policy!r}: allowed are {' and '.join(POLICIES)}")
    if policy is not None:
        changes[POLICY] = policy.upper()
    for name in _FLAGS:
        if name in body:
            changes[name] = _of(body[name], bool, name)
    if GIVEN_LEVEL in body:
        level = _of(body[GIVEN_LEVEL], str, GIVEN_LEVEL)
        if level is not None:
            level = level.upper()
            if level not in LEVELS:
                raise LevelError(level)
        changes[LEVEL] = level
    for name in METADATA:
        if name in body:
            changes[name] = read_metadata(body[name])
    for name in RULES:
        if name in body:
            changes[name] = read_rules(body[name])
            check_rules(changes[name])
    return changes


def read_stored(value: Mapping[str, Any]) -> Config:
    """A value of `_schemas`. Raises ValueError."""
    level = value.get(LEVEL)
    if level is not None and level not in LEVELS:
        raise ValueError(f"{LEVEL} is {level!r}")
    found = {name: _of(value.get(name), str, name) for name in (*_TEXTS, *_MORE_TEXTS)}
    flags = {name: _of(value.get(name), bool, name) for name in _FLAGS}
    parts = {name: read_metadata(value.get(name)) for name in METADATA}
    rules = {name: read_rules(value.get(name)) for name in RULES}
    return Config({**found, **flags, LEVEL: level, **parts, **rules})


def _of(value: Any, kind: type, name: str) -> Any:
    if value is None or isinstance(value, kind):
        return value
    raise ValueError(f"{name} has to be {'a text' if kind is str else 'true or false'}")

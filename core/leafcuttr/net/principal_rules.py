"""`ssl.principal.mapping.rules`: from the subject of a client's certificate to the name of its principal (KIP-371).

The rules are tried in order; the first whose pattern matches the whole subject counts, `DEFAULT` is the subject itself.
Grammar and corner cases are those of Kafka's `SslPrincipalMapper`. A rule that could never work stops the start here,
where Kafka would refuse each client.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

from leafcuttr.net.java_patterns import PatternError, java_pattern, java_replacement

_RULE: Final = re.compile(
    r"\s*(?:(?P<default>DEFAULT)"
    r"|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?)"
    r"|)\s*(?:,\s*|\Z)",
    re.DOTALL,
)
_CASES: Final[dict[str, Callable[[str], str]]] = {"": str, "L": str.lower, "U": str.upper}


class RulesError(ValueError):
    """What is wrong with the rules, for one line behind the setting's name."""


class NoRuleMatches(Exception):
    """The subject has no name by these rules."""


class _Rule(NamedTuple):
    pattern: re.Pattern[str] | None
    replacement: Callable[[re.Match[str]], str]
    case: Callable[[str], str]

    def name(self, subject: str) -> str | None:
        if self.pattern is None:
            return subject
        if self.pattern.fullmatch(subject) is None:
            return None
        # As in Kafka every place that the pattern matches is replaced, not the whole subject once.
        return self.case(self.pattern.sub(self.replacement, subject))


class PrincipalRules:
    """The rules of one listener. Raises RulesError."""

    def __init__(self, text: str) -> None:
        self._rules: Final = _parse(text.strip())

    def name(self, subject: str) -> str:
        """Of a subject as `rfc2253` writes it. Raises NoRuleMatches."""
        for rule in self._rules:
            found = rule.name(subject)
            if found is not None:
                return found
        raise NoRuleMatches(subject)


@lru_cache(32)
def principal_rules(text: str) -> PrincipalRules:
    """Raises RulesError."""
    return PrincipalRules(text)


def _parse(text: str) -> list[_Rule]:
    rules: list[_Rule] = []
    at = 0
    while at < len(text):
        found = _RULE.match(text, at)
        if found is None:
            raise RulesError(f"{text[at:]!r} does not begin with DEFAULT or RULE:pattern/replacement/[LU]")
        at = found.end()
        if found["default"]:
            rules.append(_Rule(None, lambda match: match[0], str))
        elif found["pattern"] is not None:
            rules.append(_rule(found["pattern"], found["replacement"], found["case"]))
    if not rules:
        raise RulesError("there is no rule, so no client would have a name; allowed is DEFAULT")
    return rules


def _rule(pattern: str, replacement: str, case: str) -> _Rule:
    try:
        compiled = java_pattern(pattern)
    except PatternError as error:
        raise RulesError(f"the pattern {pattern!r}: {error}") from None
    try:
        # In Kafka too $9 of a pattern with fewer groups is these two characters here, where the pattern has a group.
        made = java_replacement(replacement, compiled, unknown_is_text=compiled.groups > 0)
    except PatternError as error:
        raise RulesError(f"the replacement {replacement!r}: {error}") from None
    return _Rule(compiled, made, _CASES[case])

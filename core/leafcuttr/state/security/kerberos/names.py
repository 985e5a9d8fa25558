"""`sasl.kerberos.principal.to.local.rules`: from a principal of Kerberos, `alice/host@REALM`, to the name of a user.

The rules are tried in order; the first that fits counts. `DEFAULT` is the first part of a name of the own realm,
`RULE:[n:format](pattern)s/from/to/g/L` is for names of n parts: `$0` in the format is the realm, `$1` and `$2` are the
parts. Grammar and corner cases are those of Kafka's `KerberosShortNamer`. A rule that could never give a name stops the
start here, where Kafka would refuse each client.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from leafcuttr.net.java_patterns import PatternError, java_pattern, java_replacement

DEFAULT_RULES: Final = ("DEFAULT",)
_PRINCIPAL: Final = re.compile(r"([^/@]*)(?:/([^/@]*))?@([^/@]*)")
_RULE: Final = re.compile(
    r"DEFAULT|RULE:\[(?P<parts>[0-9]+):(?P<format>[^\]]*)\](?:\((?P<pattern>[^)]*)\))?"
    r"(?:s/(?P<from>[^/]*)/(?P<to>[^/]*)/(?P<all>g)?)?/?(?P<case>[LU]?)"
)
_PARAMETER: Final = re.compile(r"\$([0-9]*)")
_CASES: Final[dict[str, Callable[[str], str]]] = {"": str, "L": str.lower, "U": str.upper}


class KerberosRulesError(ValueError):
    """What is wrong with the rules, for one line behind the setting's name."""


class NoShortName(Exception):
    """A principal has no name by the rules; one clause, for the log."""


class KerberosName(NamedTuple):
    """A principal, taken apart. A user's has no `host` as a rule."""

    service: str
    host: str | None
    realm: str | None

    def __str__(self) -> str:
        host = "" if self.host is None else f"/{self.host}"
        return f"{self.service}{host}" + ("" if self.realm is None else f"@{self.realm}")


def parse_principal(text: str) -> KerberosName:
    """Raises ValueError for more than two parts, and for signs that are written with a backslash."""
    found = _PRINCIPAL.fullmatch(text)
    if "\\" in text or not text or (found is None and "@" in text):
        raise ValueError(f"{text[:200]!r} is not name@REALM or name/host@REALM")
    if found is None:
        return KerberosName(text, None, None)
    return KerberosName(found[1], found[2], found[3])


class _Rule(NamedTuple):
    """`parts` is 0 for DEFAULT."""

    text: str
    parts: int = 0
    format: str = ""
    pattern: re.Pattern[str] | None = None
    change: Callable[[str], str] = str
    case: Callable[[str], str] = str

    def name(self, given: Sequence[str], own_realm: str) -> str | None:
        """`given` are the realm and the parts; None: the rule is for others. Raises NoShortName."""
        if not self.parts:
            found = given[1] if given[0] == own_realm else None
        elif len(given) - 1 != self.parts:
            found = None
        else:
            made = _PARAMETER.sub(lambda match: given[int(match[1])], self.format)
            matches = self.pattern is None or self.pattern.fullmatch(made) is not None
            found = self.change(made) if matches else None
        if found is None:
            return None
        if "/" in found or "@" in found or not found:
            raise NoShortName(f"{self.text} makes {found!r} of {given[0]!r} and {list(given[1:])}")
        return self.case(found)


class KerberosRules:
    """The rules of one listener. Raises KerberosRulesError."""

    def __init__(self, rules: Sequence[str]) -> None:
        self._rules: Final = [_parse(text) for text in rules]
        if not self._rules:
            raise KerberosRulesError("there is no rule, so no client would have a name; allowed is DEFAULT")

    def short_name(self, name: KerberosName, own_realm: str) -> str:
        """Raises NoShortName."""
        if name.realm is None and name.host is None:
            return name.service
        if name.realm is not None and name.realm.startswith("WELLKNOWN:"):
            # RFC 8062: this is the realm of clients without a name.
            raise NoShortName(f"{name} is nobody's name")
        parts = [name.service] if name.host is None else [name.service, name.host]
        for rule in self._rules:
            found = rule.name([name.realm or "", *parts], own_realm)
            if found is not None:
                return found
        raise NoShortName(f"no rule of sasl.kerberos.principal.to.local.rules is for {name}")


@lru_cache(32)
def kerberos_rules(rules: tuple[str, ...]) -> KerberosRules:
    """Raises KerberosRulesError."""
    return KerberosRules(rules)


def _parse(text: str) -> _Rule:
    found = _RULE.fullmatch(text)
    if found is None:
        raise KerberosRulesError(f"{text!r} is neither DEFAULT nor RULE:[n:format](pattern)s/from/to/g/L")
    if found["parts"] is None:
        return _Rule(text)
    parts = int(found["parts"])
    for number in _PARAMETER.findall(found["format"]):
        if not number or int(number) > parts:
            raise KerberosRulesError(f"{text!r}: ${number} is none of $0 to ${parts}")
    try:
        pattern = None if found["pattern"] is None else java_pattern(found["pattern"])
        change = str if found["from"] is None else _change(found["from"], found["to"], bool(found["all"]))
    except PatternError as error:
        raise KerberosRulesError(f"{text!r}: {error}") from None
    return _Rule(text, parts, found["format"], pattern, change, _CASES[found["case"]])


def _change(pattern: str, replacement: str, everywhere: bool) -> Callable[[str], str]:
    """Raises PatternError."""
    compiled = java_pattern(pattern)
    made = java_replacement(replacement, compiled)
    count = 0 if everywhere else 1
    return lambda text: compiled.sub(made, text, count)

"""The lines of a file of MirrorMaker 2: what each key is about, which value it has, and what is wrong with it. No I/O.

A key stands alone, behind the alias of a cluster (`edge.`), or behind a flow (`edge->hub.`); keys of clients may have
`producer.`, `consumer.` or `admin.` in front, in a flow also `source.` or `target.` before that. Source:
MirrorMakerConfig.connectorBaseConfig and MirrorConnectorConfig.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from leafcuttr_forward.mm2.client_keys import CLIENT_KEYS, ClientKey
from leafcuttr_forward.mm2.keys import KEYS, Kind, MirrorKey, Use, Where
from leafcuttr_forward.mm2.worker_keys import ANYWHERE, WORKER_KEYS
from leafcuttr_sdk.properties import Property
from leafcuttr_sdk.settings import FindingLevel

MIRROR: Final = {key.name: key for key in (*KEYS, *WORKER_KEYS)}
CLIENT: Final = {key.name: key for key in CLIENT_KEYS}
_ALSO_OF_CLIENTS: Final = ("sasl.username", "sasl.password", "ssl.ca.location", "ssl.certificate.location")
"""Names of librdkafka's that the client takes too."""
_FORMER: Final = {
    "topics.blacklist": "topics.exclude",
    "groups.blacklist": "groups.exclude",
    "config.properties.blacklist": "config.properties.exclude",
}
"""Their names before Kafka 4.0: taken, because without them the wrong topics would be copied."""
_ROLES: Final = ("producer.", "consumer.", "admin.")
_ENDS: Final = ("source.cluster.", "target.cluster.", "source.", "target.")
_FAMILIES: Final = {"config.providers.": "config.providers", "transforms.": "transforms"}
"""What these begin with belongs to that key."""
_FLOW: Final = re.compile(r"(.+?)->(.+)")
_SECRET: Final = re.compile(r"password|secret|jaas|passphrase|\.key$", re.IGNORECASE)


class MirrorFinding(NamedTuple):
    """One thing to say of the file. `value` is None for a secret, and where no value is meant."""

    level: FindingLevel
    line: int
    key: str
    value: str | None
    text: str

    def of(self, file: str) -> str:
        """All of it in one line, with the name of the file."""
        shown = self.key if self.value is None else f"{self.key}={self.value}"
        return f"{file}:{self.line}: {shown}: {self.text}"


class KeyPlace(NamedTuple):
    """What a key is about: nothing, the alias of a cluster, or the source and target of a flow."""

    source: str | None = None
    target: str | None = None

    @property
    def where(self) -> Where:
        if self.target is not None:
            return Where.FLOW
        return Where.TOP if self.source is None else Where.CLUSTER

    def __str__(self) -> str:
        if self.source is None:
            return ""
        return f"{self.source}." if self.target is None else f"{self.source}->{self.target}."


TOP: Final = KeyPlace()


class Entry(NamedTuple):
    """One key of the file. `name` is the key without its place; of a client's, `prefix` is what stands between."""

    place: KeyPlace
    prefix: str
    name: str
    value: str
    line: int
    key: str
    """As it stands in the file."""

    @property
    def shown(self) -> str | None:
        """The value, unless it is a secret."""
        known = CLIENT.get(self.name)
        secret = _SECRET.search(self.name) or (known is not None and known.kind is Kind.PASSWORD)
        return None if secret else self.value

    def finding(self, level: FindingLevel, text: str) -> MirrorFinding:
        return MirrorFinding(level, self.line, self.key, self.shown, text)


def read_entries(
    properties: Iterable[Property], resolve: Callable[[str], str]
) -> tuple[list[Entry], list[MirrorFinding]]:
    """All keys that mean something, of one that comes twice the last; and what is to be said of the file.

    `resolve` puts what providers have in the place of `${...}`, and raises ValueError.
    """
    last = {each.key.strip(): each for each in properties}
    clusters = aliases(last["clusters"].value) if "clusters" in last else ()
    found: list[Entry] = []
    said: list[MirrorFinding] = []
    for each in properties:
        key = each.key.strip()
        if last[key] is not each:
            text = f"line {last[key].line} has it again, and that one counts"
            said.append(MirrorFinding(FindingLevel.WARNING, each.line, key, None, text))
            continue
        place, rest = _place_of(key, clusters)
        prefix, name = _prefix_of(rest, place)
        entry = Entry(place, prefix, name, each.value.strip(), each.line, key)
        try:
            entry = entry._replace(value=resolve(entry.value))
        except ValueError as error:
            said.append(entry.finding(FindingLevel.ERROR, str(error)))
            continue
        why = _why_none(entry, clusters)
        if why is None:
            found.append(entry)
        else:
            said.append(why)
    said += [finding for entry in found for finding in _about_value(entry)]
    return [entry for entry in found if not _is_wrong(entry, said)], said


def aliases(text: str) -> tuple[str, ...]:
    """The members of a list, as ConfigDef reads it."""
    return tuple(part for part in re.split(r"\s*,\s*", text.strip()) if part)


def _is_wrong(entry: Entry, said: Iterable[MirrorFinding]) -> bool:
    return any(finding.level is FindingLevel.ERROR and finding.line == entry.line for finding in said)


def _place_of(key: str, clusters: Iterable[str]) -> tuple[KeyPlace, str]:
    """The place of a key, and what stands behind it."""
    flow = _FLOW.fullmatch(key)
    if flow is not None:
        for target in sorted(clusters, key=len, reverse=True):
            if flow[2].startswith(f"{target}."):
                return KeyPlace(flow[1].strip(), target), flow[2][len(target) + 1 :]
        target, _, rest = flow[2].partition(".")
        return KeyPlace(flow[1].strip(), target.strip()), rest
    if key not in MIRROR:
        for alias in sorted(clusters, key=len, reverse=True):
            if key.startswith(f"{alias}."):
                return KeyPlace(alias), key[len(alias) + 1 :]
    return TOP, key


def _prefix_of(rest: str, place: KeyPlace) -> tuple[str, str]:
    """The prefix of a client's key, and its name. `consumer.poll.timeout.ms` and `admin.timeout.ms` are no such."""
    if rest in MIRROR:
        return "", rest
    prefix = ""
    if place.where is not Where.CLUSTER:
        prefix = next((end for end in _ENDS if rest.startswith(end)), "")
    role = next((role for role in _ROLES if rest.startswith(role, len(prefix))), "")
    return prefix + role, rest[len(prefix) + len(role) :]


def _why_none(entry: Entry, clusters: Iterable[str]) -> MirrorFinding | None:
    """Why an entry means nothing; None if it does."""
    place, name, where = entry.place, entry.name, entry.place.where
    unknown = [each for each in (place.source, place.target) if each is not None and each not in clusters]
    if where is Where.FLOW and unknown:
        return entry.finding(
            FindingLevel.WARNING, f"{unknown[0]} is none of the clusters ({', '.join(clusters)})"
        )
    if name in _FORMER:
        return None
    mirror = None if entry.prefix else _mirror_key(name)
    if mirror is not None and (where in mirror.where or name.startswith(ANYWHERE)):
        return None
    if name in CLIENT or name in _ALSO_OF_CLIENTS:
        return _why_not_of_client(entry)
    if mirror is not None:
        return entry.finding(
            FindingLevel.WARNING, f"it has no effect here; it is taken as {_taken_as(mirror)}"
        )
    return _unknown(entry)


def _mirror_key(name: str) -> MirrorKey | None:
    owner = next((owner for family, owner in _FAMILIES.items() if name.startswith(family)), name)
    return MIRROR.get(owner)


def _taken_as(key: MirrorKey) -> str:
    ways = {
        Where.TOP: key.name,
        Where.CLUSTER: f"CLUSTER.{key.name}",
        Where.FLOW: f"SOURCE->TARGET.{key.name}",
    }
    return " or ".join(way for where, way in ways.items() if where in key.where)


def _why_not_of_client(entry: Entry) -> MirrorFinding | None:
    """Alone only what says how to connect is taken, as MirrorMaker does; in a flow it needs a prefix."""
    name, where = entry.name, entry.place.where
    if where is Where.CLUSTER:
        return None
    if (
        where is Where.TOP
        and not entry.prefix
        and name.startswith(("bootstrap.", "security.", "ssl.", "sasl."))
    ):
        return None
    if where is Where.FLOW and entry.prefix:
        return None
    ways = "CLUSTER." if where is Where.TOP else "source.consumer., target.producer. or admin."
    return entry.finding(
        FindingLevel.WARNING,
        f"it has no effect, as in MirrorMaker; it is taken with {ways} in front of {name}",
    )


def _unknown(entry: Entry) -> MirrorFinding:
    name = entry.name
    if name.startswith(ANYWHERE):
        return entry.finding(FindingLevel.NOTE, "no meaning here: there are no workers of Connect")
    pool = CLIENT if entry.prefix else {**CLIENT, **MIRROR} if entry.place.source else MIRROR
    near = difflib.get_close_matches(name, pool, n=1, cutoff=0.75)
    meant = f"; did you mean {entry.place}{entry.prefix}{near[0]}?" if near else ""
    finding = entry.finding(FindingLevel.WARNING, f"no key of MirrorMaker's, and it has no effect{meant}")
    return finding._replace(value=None)  # of an unknown name it may be a secret


def _about_value(entry: Entry) -> Iterator[MirrorFinding]:
    if entry.name in _FORMER:
        now = _FORMER[entry.name]
        yield entry.finding(FindingLevel.WARNING, f"it is called {now} since Kafka 4.0")
        return
    key: MirrorKey | ClientKey | None = None
    if not entry.prefix and (entry.place.where is not Where.CLUSTER or entry.name in MIRROR):
        key = _mirror_key(entry.name)
    key = key or CLIENT.get(entry.name)
    if key is None:
        return
    choices = key.choices if isinstance(key, MirrorKey) else ()
    minimum = key.minimum if isinstance(key, MirrorKey) else None
    if entry.name == key.name and (why := why_not(key.kind, entry.value, choices, minimum)):
        yield entry.finding(FindingLevel.ERROR, why)
    elif key.use is Use.IGNORED:
        yield entry.finding(FindingLevel.NOTE, f"no meaning here: {key.what}")
    elif key.use is Use.REFUSED and entry.name == key.name and entry.value != (key.default or ""):
        default = f"allowed is {key.default}" if key.default else "allowed is nothing"
        yield entry.finding(FindingLevel.ERROR, f"{default}. {key.what}")


def why_not(kind: Kind, value: str, choices: tuple[str, ...] = (), minimum: int | None = None) -> str | None:
    """Why a value is not allowed, in one clause; None if it is."""
    if kind is Kind.BOOLEAN and value.lower() not in ("true", "false"):
        return "allowed are true and false"
    if kind in _BITS:
        low = -(1 << _BITS[kind] - 1) if minimum is None else minimum
        high = (1 << _BITS[kind] - 1) - 1
        if not re.fullmatch(r"[+-]?[0-9]{1,19}", value) or not low <= int(value) <= high:
            return f"allowed is a whole number from {low} to {high}"
    if choices and value.lower() not in {choice.lower() for choice in choices}:
        return f"allowed {'is' if len(choices) == 1 else 'are'} {', '.join(choices)}"
    return None


_BITS: Final = {Kind.SHORT: 16, Kind.INT: 32, Kind.LONG: 64}


class Entries:
    """The entries of a file, by place and name."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._all = tuple(entries)
        self._plain: Mapping[tuple[KeyPlace, str], Entry] = {
            (entry.place, _FORMER.get(entry.name, entry.name)): entry
            for entry in self._all
            if not entry.prefix
        }

    def get(self, name: str, *places: KeyPlace) -> Entry | None:
        """The entry of this name in the first of these places that has one."""
        return next((found for place in places if (found := self._plain.get((place, name)))), None)

    def client(self, place: KeyPlace, prefix: str) -> dict[str, str]:
        """The settings of clients with exactly this prefix."""
        return {
            entry.name: entry.value
            for entry in self._all
            if entry.place == place
            and entry.prefix == prefix
            and (entry.name in CLIENT or entry.name in _ALSO_OF_CLIENTS)
        }

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._all)

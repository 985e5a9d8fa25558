"""The page of every key of MirrorMaker 2 and of kaf-relay, and of the metrics, made of the tables of the code:
`python -m leafcuttr_forward.reference_page > docs/reference/forwarding.md`. A test compares the committed page with it.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

from leafcuttr_forward.flows.report import FlowReport
from leafcuttr_forward.mm2.client_keys import CLIENT_KEYS, ClientKey
from leafcuttr_forward.mm2.keys import KEYS as MIRROR_KEYS
from leafcuttr_forward.mm2.keys import MirrorKey, Use, Where
from leafcuttr_forward.mm2.worker_keys import WORKER_KEYS
from leafcuttr_forward.people.metrics import flow_readings
from leafcuttr_forward.relay.counters import RelayCounters
from leafcuttr_forward.relay.keys import KEYS as RELAY_KEYS
from leafcuttr_forward.relay.keys import Kind, RelayKey
from leafcuttr_forward.relay.pool import SourcePool

_HEAD: Final = """\
# Keys of forwarding

Every key of [MirrorMaker 2's file](../how-to/forward.md), which a broker reads, and of
[kaf-relay's files](../how-to/relay.md), which `leafcuttr relay` reads. Files are taken as they are: what is unknown
draws a line with the nearest key, what has no meaning here is accepted with a line, and a value that is not allowed is
refused with one that names the file, the key, the value and what is allowed.

This page is made of the tables that the code reads files by (`python -m leafcuttr_forward.reference_page`).
"""
_MIRROR: Final = """
## MirrorMaker 2

A key may stand alone, for all flows, or behind `SOURCE->TARGET.`, for one; those of a cluster stand behind its alias,
as in `hub.bootstrap.servers`.
"""
_WORKERS: Final = """
### Of Connect's workers

Behind the alias of the target of a flow.
"""
_CLIENTS: Final = """
### Of Kafka's clients

Behind the alias of a cluster, and there also behind `producer.`, `consumer.` and `admin.`. Beside Java's names those
of librdkafka are known.
"""
_RELAY: Final = """
## kaf-relay

TOML. Several files are merged in their order: tables key by key, lists as a whole. Durations are Go's: `300ms`, `2s`,
`1m30s`. *No effect* means that the key is accepted and nothing changes by it.
"""
_METRICS: Final = """
## Metrics

Of a broker that forwards at its admin port, of a relay at `metrics_server_addr`, of a mirror at `--metrics`. Those that
begin with `kafka_relay_` have kaf-relay's names; relays and mirrors have them.
"""
_SECTIONS: Final = {
    "": "At the top",
    "app": "`[app]`",
    "topics": "`[topics]`, `[[topics]]`",
    "source_pool": "`[source_pool]`",
    "sources": "`[[sources]]`",
    "target": "`[target]`",
    "filters": "`[filters.NAME]`",
}
_PLACES: Final = {Where.TOP: "alone", Where.CLUSTER: "`ALIAS.`", Where.FLOW: "`SOURCE->TARGET.`"}


def page() -> str:
    """The whole page."""
    return "".join(
        (
            _HEAD,
            _MIRROR,
            *_table(("Key", "Where", "Type", "Default", "Here"), map(_mirror_row, MIRROR_KEYS)),
            _WORKERS,
            *_table(("Key", "Type", "Default", "Here"), map(_worker_row, WORKER_KEYS)),
            _CLIENTS,
            *_table(("Key", "Type", "Default", "Here"), map(_client_row, CLIENT_KEYS)),
            _RELAY,
            *_relay(),
            _METRICS,
            *_table(("Metric", "Labels", "What it is"), _metric_rows()),
        )
    )


def _relay() -> Iterator[str]:
    for section, keys in groupby(RELAY_KEYS, lambda key: key.section):
        yield f"\n### {_SECTIONS[section]}\n"
        yield from _table(("Key", "Value", "Default", "Here"), map(_relay_row, keys))


def _metric_rows() -> Iterator[Sequence[str]]:
    for metric, _ in flow_readings(tuple, lambda: 0):
        yield f"`{metric.name}`", _labels(metric.labels), metric.help
    counters = RelayCounters(FlowReport("any"), SourcePool(["any"], lag_threshold=0))
    for other in counters.metrics():
        yield f"`{other.name}`", _labels(other.labels), other.help


def _labels(names: Iterable[str]) -> str:
    return ", ".join(f"`{each}`" for each in names)


def _mirror_row(key: MirrorKey) -> Sequence[str]:
    places = ", ".join(text for place, text in _PLACES.items() if place in key.where)
    return f"`{key.name}`", places, key.kind.value, _code(key.default), _said(key.what, key.use)


def _worker_row(key: MirrorKey) -> Sequence[str]:
    return f"`{key.name}`", key.kind.value, _code(key.default), _said(key.what, key.use)


def _client_row(key: ClientKey) -> Sequence[str]:
    return f"`{key.name}`", key.kind.value, _code(key.default), _said(key.what, key.use)


def _relay_row(key: RelayKey) -> Sequence[str]:
    default = key.default
    if key.kind is Kind.SWITCH:
        default = "true" if default else "false"
    here = key.here if key.acts else key.here.replace("Accepted: ", "No effect: ", 1)
    return f"`{key.name}`", _choices(key), _code(str(default) or None), here


def _choices(key: RelayKey) -> str:
    if key.choices:
        return ", ".join(f"`{each}`" for each in key.choices if each)
    return "duration" if key.kind is Kind.DURATION else key.allowed.removeprefix("a ")


def _said(what: str, use: Use) -> str:
    return what if use is Use.USED else f"{use.value[0].upper()}{use.value[1:]}: {what[0].lower()}{what[1:]}"


def _code(text: object) -> str:
    return "" if text in (None, "") else f"`{text}`"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"\n| {' | '.join(head)} |\n|{'---|' * len(head)}\n"
    for row in rows:
        cells = (each.replace("|", "\\|").replace("\n", " ") for each in row)
        yield f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    sys.stdout.write(page())

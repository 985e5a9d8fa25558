"""A scenario: a sequence of requests that runs on each side alike, once for every version it is declared for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from parity import codec
from parity.side import Side

Run = Callable[[Side, int], None]

# What Kafka 4.3 answers on a client listener, where that is not what `kio` has definitions for.
SERVED = {"init_producer_id": range(6)}


@dataclass(frozen=True)
class Scenario:
    """`topic_settings` are given to LeafCuttr's topics and not to Kafka's, which does not know them; `variant` is their
    key in `also_with`."""

    api: str
    name: str
    versions: tuple[int, ...]
    run: Run
    topic_settings: Mapping[str, str] = field(default_factory=dict)
    variant: str = ""

    @property
    def edges(self) -> tuple[int, ...]:
        """The oldest and the newest version: what the default gate compares. Of a variant, the newest."""
        return tuple(sorted({self.versions[-1] if self.variant else self.versions[0], self.versions[-1]}))


ALL: list[Scenario] = []


def scenario(
    api: str,
    versions: Iterable[int] | None = None,
    *,
    also_with: Mapping[str, Mapping[str, str]] | None = None,
) -> Callable[[Run], Run]:
    """Declares a scenario of an API; without `versions`, for every one that Kafka 4.3 serves.

    `also_with` runs it once more for each of its entries, with these settings for the topics that `Side.create` makes
    on LeafCuttr; the key becomes part of the scenario's name.
    """

    def declare(run: Run) -> Run:
        chosen = tuple(versions if versions is not None else SERVED.get(api, codec.versions(api)))
        ALL.append(Scenario(api, run.__name__, chosen, run))
        for hint, settings in (also_with or {}).items():
            ALL.append(Scenario(api, f"{run.__name__}-{hint}", chosen, run, settings, hint))
        return run

    return declare


def load_all() -> list[Scenario]:
    """Every scenario below `scenarios/`."""
    for file in sorted((Path(__file__).parent / "scenarios").glob("*.py")):
        import_module(f"parity.scenarios.{file.stem}")
    return ALL

"""Plugins find the schema provider of another plugin, and what filters and validators get is the same one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from leafcuttr_sdk import Plugin, ProduceValidatorSpec, Record, TopicContext
from leafcuttr_sdk.testing import running_broker
from support.column_registry import ColumnRegistry

if TYPE_CHECKING:
    from leafcuttr_sdk import Broker
    from leafcuttr_sdk.schemas import SchemaProvider


def plugin(name: str, **hooks: Any) -> ModuleType:
    module = ModuleType(name)
    module.PLUGIN = Plugin(name, 1, "of a test")  # type: ignore[attr-defined]
    for hook, function in hooks.items():
        function.__name__ = f"leafcuttr_register_{hook}"
        setattr(module, function.__name__, function)
    return module


class Keeps:
    """A validator that keeps what it was made with."""

    made: list[TopicContext]

    def __init__(self, context: TopicContext) -> None:
        self.made.append(context)

    def validate(self, record: Record) -> str | None:
        return None


def validators() -> tuple[ModuleType, list[TopicContext]]:
    made: list[TopicContext] = []
    keeps = type("Keeps", (Keeps,), {"made": made})

    def specs() -> Iterable[ProduceValidatorSpec]:
        return [ProduceValidatorSpec("keeps", "keeps its context", keeps)]

    return plugin("looks", produce_validators=specs), made


async def seen(broker: Broker) -> SchemaProvider | None:
    await broker.topics.create("orders", configs={"lc.validators": "keeps"})
    await broker.produce("orders", b"1")
    return broker.schemas


def test_the_provider_of_a_plugin_is_seen_by_all(tmp_path: Path) -> None:
    registry = ColumnRegistry()
    looks, made = validators()

    def provider(broker: Broker) -> Iterable[SchemaProvider]:
        return [registry]

    with running_broker(tmp_path, plugins=[looks, plugin("keeper", schema_provider=provider)]) as broker:
        assert broker.call(seen) is registry
    assert made and all(each.schemas is registry and each.broker.schemas is registry for each in made)


def test_without_one_there_is_none(tmp_path: Path) -> None:
    looks, made = validators()
    with running_broker(tmp_path, plugins=[looks]) as broker:
        assert broker.call(seen) is None
    assert made and all(each.schemas is None for each in made)


def test_a_plugin_that_is_left_out_leaves_no_provider(tmp_path: Path) -> None:
    looks, _ = validators()

    def two(broker: Broker) -> Iterable[SchemaProvider]:
        return [ColumnRegistry(), ColumnRegistry()]

    with running_broker(tmp_path, plugins=[looks, plugin("both", schema_provider=two)]) as broker:
        assert broker.call(seen) is None

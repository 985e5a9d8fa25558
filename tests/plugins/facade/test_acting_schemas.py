"""Schemas as a client of a plugin may see them: subjects are topics of ACLs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from leafcuttr.plugins.facade.opening import make_broker_view
from leafcuttr.state.broker import Broker
from leafcuttr_sdk.errors import TopicAuthorizationFailed
from leafcuttr_sdk.plugin import Plugin
from leafcuttr_sdk.principals import Principal
from leafcuttr_sdk.schemas import (
    Difference,
    IncompatibleSchemaError,
    RegisteredSchema,
    SchemaNotFoundError,
    SchemaProvider,
    SchemaReference,
)
from plugins.facade.test_acting import ALICE, STANDARD, grant
from support.column_registry import ColumnRegistry

Open = Callable[..., Broker]
TEXT, OTHER = "amount", "card"
GONE = Difference("COLUMN_MOVED", "/0", "amount", None, "Column 0 was amount.")


class Registry:
    """Two subjects that have schemas, and the provider for alice."""

    def __init__(self, core: Broker) -> None:
        self.core = core
        self.all = ColumnRegistry()
        core.plugged.schema_provider = "registry", self.all
        view = make_broker_view(core, Plugin("sample", 1, "one for tests"))
        assert view.schemas is self.all
        found = view.security.acting_for(ALICE).schemas
        assert found is not None
        self.of_alice: SchemaProvider = found

    async def may(self, operation: str, subject: str) -> None:
        await grant(self.core, operation, name=f"subject/{subject}")


@pytest.fixture
async def registry(open_core: Open) -> Registry:
    found = Registry(open_core(authorizer_class_name=STANDARD))
    await found.all.register("orders", "COLUMNS", TEXT)
    await found.all.register("secrets", "COLUMNS", OTHER)
    return found


def missing(error: pytest.ExceptionInfo[TopicAuthorizationFailed]) -> tuple[str | None, str | None]:
    return error.value.operation, error.value.resource_name


async def test_an_id_is_found_in_a_subject_that_may_be_read(registry: Registry) -> None:
    of_alice = registry.of_alice
    with pytest.raises(TopicAuthorizationFailed) as failed:
        await of_alice.by_id(1, "orders")
    assert missing(failed) == ("READ", "subject/orders")
    assert of_alice.get(1, "orders") is of_alice.parsed(1, "orders") is None
    await registry.may("READ", "orders")
    assert await of_alice.by_id(1, "orders") == of_alice.get(1, "orders") == registry.all.get(1)
    parsed = of_alice.parsed(1, "orders")
    assert parsed is not None
    assert parsed.canonical == "amount"
    # Neither without a subject, nor in one that may be read and does not have it.
    for subject in (None, "orders"):
        assert of_alice.get(2, subject) is of_alice.parsed(2, subject) is None
        with pytest.raises(SchemaNotFoundError):
            await of_alice.by_id(2, subject)
    assert of_alice.get(1) is None
    with pytest.raises(SchemaNotFoundError, match="name one"):
        await of_alice.by_id(1)


async def test_versions_are_read(registry: Registry) -> None:
    await registry.may("WRITE", "orders")
    with pytest.raises(TopicAuthorizationFailed) as failed:
        await registry.of_alice.by_version("orders")
    assert missing(failed) == ("READ", "subject/orders")
    await registry.may("READ", "orders")
    assert (await registry.of_alice.by_version("orders")).schema.text == "amount"
    with pytest.raises(TopicAuthorizationFailed):
        await registry.of_alice.by_version("secrets")


@pytest.mark.parametrize("operation", ["READ", "WRITE"])
async def test_who_may_read_or_write_looks_up(registry: Registry, operation: str) -> None:
    with pytest.raises(TopicAuthorizationFailed) as failed:
        await registry.of_alice.find("orders", "COLUMNS", TEXT)
    assert missing(failed) == ("WRITE", "subject/orders")
    assert not registry.of_alice.belongs(1, "orders")
    await registry.may(operation, "orders")
    assert (await registry.of_alice.find("orders", "COLUMNS", TEXT)).version == 1
    assert registry.of_alice.belongs(1, "orders")
    assert not registry.of_alice.belongs(2, "orders")


async def test_who_may_write_registers(registry: Registry) -> None:
    await registry.may("READ", "orders")
    with pytest.raises(TopicAuthorizationFailed) as failed:
        await registry.of_alice.register("orders", "COLUMNS", "colour")
    assert missing(failed) == ("WRITE", "subject/orders")
    assert len(registry.all.subjects["orders"]) == 1
    await registry.may("WRITE", "orders")
    assert (await registry.of_alice.register("orders", "COLUMNS", "colour")).id == 3


async def test_what_a_schema_refers_to_is_read(registry: Registry) -> None:
    await registry.may("WRITE", "orders")
    references = [SchemaReference("other", "secrets", 1)]
    for call in (registry.of_alice.register, registry.of_alice.find):
        with pytest.raises(TopicAuthorizationFailed) as failed:
            await call("orders", "COLUMNS", TEXT, references)
        assert missing(failed) == ("READ", "subject/secrets")
    await registry.may("READ", "secrets")
    await registry.of_alice.register("orders", "COLUMNS", TEXT, references)


async def test_why_a_schema_is_not_compatible_is_for_those_who_may_read(registry: Registry) -> None:
    async def refuse(*_: object) -> RegisteredSchema:
        raise IncompatibleSchemaError("amount is gone", [GONE])

    registry.all.register = refuse  # type: ignore[method-assign]
    await registry.may("WRITE", "orders")
    with pytest.raises(
        IncompatibleSchemaError, match="to see why takes READ on topic subject/orders"
    ) as failed:
        await registry.of_alice.register("orders", "COLUMNS", "colour")
    assert not failed.value.differences
    assert failed.value.__context__ is None
    await registry.may("READ", "orders")
    with pytest.raises(IncompatibleSchemaError, match="amount is gone") as failed:
        await registry.of_alice.register("orders", "COLUMNS", "colour")
    assert failed.value.differences == (GONE,)


@pytest.mark.parametrize(
    ("subject", "reference", "right"),
    [
        (":.:orders", ":.:secrets", "secrets"),
        (":.east:orders", "secrets", ":.east:secrets"),
        (":.east:orders", ":.west:secrets", ":.west:secrets"),
        ("orders", ":.west:secrets", ":.west:secrets"),
    ],
)
async def test_a_subject_has_one_name(registry: Registry, subject: str, reference: str, right: str) -> None:
    await registry.may("WRITE", subject.replace(":.:", ""))
    with pytest.raises(TopicAuthorizationFailed) as failed:
        await registry.of_alice.find(subject, "COLUMNS", TEXT, [SchemaReference("other", reference, 1)])
    assert missing(failed) == ("READ", f"subject/{right}")


async def test_it_waits_for_what_the_provider_waits_for(registry: Registry) -> None:
    assert registry.of_alice.waits_for is None
    registry.all.waits_for = "the topic _schemas is still being read"
    assert registry.of_alice.waits_for == "the topic _schemas is still being read"


async def test_without_an_authorizer_or_a_provider(open_core: Open) -> None:
    secured, plain = open_core(authorizer_class_name=STANDARD), open_core()
    sample = Plugin("sample", 1, "one for tests")
    assert make_broker_view(secured, sample).security.acting_for(ALICE).schemas is None
    registry = ColumnRegistry()
    plain.plugged.schema_provider = "registry", registry
    assert make_broker_view(plain, sample).security.acting_for(Principal("User", "x")).schemas is registry

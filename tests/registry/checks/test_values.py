"""Values by schemas that some would keep busy without a bound."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import pytest

from leafcuttr_registry.checks import values as checks
from leafcuttr_registry.checks.values import _up_to, check_values
from leafcuttr_registry.json_schema.schema import parse
from support.checked_topics import Shop
from support.fatal_schemas import Fatal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leafcuttr_sdk import Broker

BUSY: Any = parse('{"type":"string","pattern":"^(a+)+$"}', {})
GOOD, WRONG, EVIL = b'"aaa"', b'"b"', b'"' + b"a" * 40 + b'!"'
TOO_LONG = "takes longer than 0.1 s to be checked by its schema"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    from leafcuttr_sdk.testing import running_broker
    from support.registry import SETTINGS

    with running_broker(tmp_path_factory.mktemp("shop"), SETTINGS, ["registry"]) as broker:
        shop = Shop(broker)
        assert checked(shop, BUSY, GOOD) == [None]  # what is imported for it takes time as well
        yield shop


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evil values are not what the gate's time is for."""
    monkeypatch.setattr(checks, "EACH_S", 0.1)


def checked(shop: Shop, schema: Any, *values: bytes) -> list[str | None]:
    async def check(broker: Broker) -> list[str | None]:
        provider: Any = broker.schemas
        found: list[str | None] = await provider.check_values(schema, values)
        return found

    return shop.broker.call(check)


def test_a_value_that_takes_too_long_is_told_from_others() -> None:
    """And the alarm is given back."""
    before = signal.getsignal(signal.SIGPROF)
    told, used_s = check_values(BUSY, [GOOD, EVIL, WRONG, GOOD], 0.05, 60)
    assert 0 < used_s < 60
    assert told[:2] == [None, "takes longer than 0.05 s to be checked by its schema"]
    assert told[2] is not None and told[2].startswith("is not of its schema: at \"$\": 'b' does not match")
    assert told[3] is None
    assert signal.getsignal(signal.SIGPROF) is before
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def test_it_ends_when_its_time_is_used_up() -> None:
    assert check_values(BUSY, [GOOD] * 3, 0.5, -1).reasons == [None]
    assert check_values(BUSY, [], 0.5, 60).reasons == []


@pytest.mark.parametrize("slice_s", [-1.0, 60.0])
def test_all_of_them_however_many_slices_that_takes(
    shop: Shop, slice_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "SLICE_S", slice_s)
    values = [GOOD, EVIL, WRONG, GOOD]
    told = checked(shop, BUSY, *values)
    assert told[:2] == [None, TOO_LONG] and told[3] is None
    assert told[2] is not None and told[2].startswith("is not of its schema: ")
    assert checked(shop, BUSY) == []


def test_time_that_others_have_used_up(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "TOGETHER_S", 0.13)
    monkeypatch.setattr(checks, "SLICE_S", -1.0)
    told = checked(shop, BUSY, EVIL, EVIL, GOOD)
    assert told[:2] == [TOO_LONG] * 2
    assert told[2] == "comes after others that have used up the time for checks by its schema"


def test_more_bytes_have_more_time(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "TOGETHER_S", 0.13)
    monkeypatch.setattr(checks, "SLICE_S", -1.0)
    large = b'"' + b"a" * 100_000 + b'"'
    told = checked(shop, BUSY, EVIL, EVIL, large, GOOD)
    assert told[3] is None


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "values, why",
    [
        ([b"", b"bad", b"end", b""], "cannot be checked by its schema: "),
        ([b"hang", b""], "takes too long to be checked by its schema"),
        ([b"", b"large", b""], "needs more memory than it may have to be checked by its schema"),
    ],
)
def test_one_that_ends_the_process_is_found_among_others(
    shop: Shop, values: list[bytes], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "_DEADLINE_S", 1.0 if b"hang" in values else 60.0)
    monkeypatch.setattr(checks, "TOGETHER_S", 600.0)
    for value, told in zip(values, checked(shop, Fatal(), *values), strict=True):
        if not value:
            assert told is None
        else:
            assert told is not None
            assert told.startswith("is not of its schema: it is bad" if value == b"bad" else why)


def test_a_schema_that_cannot_be_sent(shop: Shop) -> None:
    class Local(Fatal):
        pass

    told = checked(shop, Local(), b"", b"bad")
    assert told[0] is not None and told[0].startswith("cannot be checked by its schema: ")
    assert told == [told[0]] * 2


def test_how_much_is_sent_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_MOST_BYTES", 10)
    values = [b"x" * 4] * 3 + [b"x" * 11] + [b"x"]
    assert _up_to(values, 0, 9) == values[:2]
    assert _up_to(values, 2, 9) == values[2:3]
    assert _up_to(values, 3, 9) == values[3:4]
    assert _up_to(values, 4, 9) == values[4:]
    assert _up_to(values, 0, 1) == values[:1]


def test_a_batch_that_waits_for_others_in_vain(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    from leafcuttr_sdk.schemas import SchemaProviderError

    monkeypatch.setattr(checks, "WAIT_S", -1.0)

    async def check(broker: Broker) -> Any:

        provider: Any = broker.schemas
        turns = provider.registry.checks._turns
        async with turns.take(checks.Limit(60), short=False):
            with pytest.raises(SchemaProviderError):
                await provider.check_values(BUSY, [GOOD])
        return await provider.check_values(BUSY, [])

    assert shop.broker.call(check) == []


@pytest.mark.parametrize("value", [GOOD, WRONG])
def test_a_registry_that_stops_meanwhile_refuses_nothing_for_good(shop: Shop, value: bytes) -> None:
    from leafcuttr_sdk.schemas import SchemaProviderError

    async def check(broker: Broker) -> Any:
        import trio

        provider: Any = broker.schemas
        registry = provider.registry
        told: list[Any] = []

        async def ask() -> None:
            try:
                told.append(await provider.check_values(BUSY, [value]))
            except SchemaProviderError as error:
                told.append(str(error))

        limit = checks.Limit(60)
        async with trio.open_nursery() as nursery, registry.checks._turns.take(limit, short=False):
            nursery.start_soon(ask)
            while not registry.checks._turns._long.statistics().tasks_waiting:
                await trio.lowlevel.checkpoint()
            provider.registry = None
        provider.registry = registry
        return told

    (told,) = shop.broker.call(check)
    assert told == [None] if value == GOOD else "cannot answer yet" in told

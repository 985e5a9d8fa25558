"""Idempotency-Key: what is sent twice is stored once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from leafcuttr_http.errors import ApiError
from leafcuttr_http.idempotency import TTL_S, Answer, Answers
from support.http_proxy import Running, running
from support.logs import HandClock


async def post(proxy: Running, key: str, body: str, path: str = "/topics/t") -> Any:
    headers = {"content-type": "application/json", "idempotency-key": key}
    async with proxy.client() as client:
        return await client.post(path, content=body, headers=headers)


async def test_the_same_again_is_answered_the_same(proxy: Running) -> None:
    first = await post(proxy, "k", '{"records":[{"value":1}]}')
    again = await post(proxy, "k", '{"records":[{"value":1}]}')
    assert first.status_code == again.status_code == 200
    assert first.json() == again.json()
    assert "idempotent-replayed" not in first.headers and again.headers["idempotent-replayed"] == "true"
    assert len(await proxy.records("t")) == 1
    other_topic = await post(proxy, "k", '{"records":[{"value":1}]}', "/topics/u")
    assert "idempotent-replayed" not in other_topic.headers
    for body, path in (
        ('{"records":[{"value":2}]}', "/topics/t"),
        ('{"records":[{"value":1}]}', "/topics/t/partitions/0"),
    ):
        answer = await post(proxy, "k", body, path)
        assert (answer.status_code, answer.json()["error_code"]) == (422, 42208)
    assert len(await proxy.records("t")) == 1


async def test_what_stored_nothing_may_be_tried_again(proxy: Running) -> None:
    await proxy.broker.topics.create("t")
    assert (await post(proxy, "k", "x")).status_code == 400
    wrong_partition = await post(proxy, "k", '{"records":[{"partition":1}]}')
    assert wrong_partition.json()["offsets"][0]["error_code"] == 40402
    await proxy.broker.topics.add_partitions("t", 2)
    again = await post(proxy, "k", '{"records":[{"partition":1}]}')
    assert again.json()["offsets"][0]["offset"] == 0


@pytest.mark.parametrize("key", ["", "x" * 256])
async def test_keys_that_are_none(proxy: Running, key: str) -> None:
    answer = await post(proxy, key, '{"records":[{}]}')
    assert (answer.status_code, answer.json()["error_code"]) == (422, 42208)


@pytest.mark.setting("lc.http.proxy.idempotency.max.bytes")
async def test_it_can_be_switched_off(tmp_path: Path) -> None:
    async with running(tmp_path / "data", {"idempotency.max.bytes": 0}) as proxy:
        answer = await post(proxy, "k", '{"records":[{}]}')
        assert (answer.status_code, answer.json().get("error_code")) == (422, 42208)


async def test_duplicates_wait_for_the_first(nursery: trio.Nursery) -> None:
    answers = Answers(HandClock(), 1 << 20)
    go = trio.Event()
    made = 0

    async def make() -> Answer:
        nonlocal made
        made += 1
        await go.wait()
        return Answer(200, b"done")

    results: list[tuple[Answer, bool]] = []

    async def ask() -> None:
        results.append(await answers.once(("t", "k"), b"f", make, nursery))

    async with trio.open_nursery() as asking:
        for _ in range(3):
            asking.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(ApiError):
            await answers.once(("t", "k"), b"other", make, nursery)
        go.set()
    assert made == 1
    assert sorted(replayed for _, replayed in results) == [False, True, True]


async def test_the_next_takes_over_from_one_that_failed(nursery: trio.Nursery) -> None:
    answers = Answers(HandClock(), 1 << 20)
    go = trio.Event()
    outcomes = iter([ApiError(50003, "no"), Answer(200, b"yes")])

    async def make() -> Answer:
        await go.wait()
        outcome = next(outcomes)
        if isinstance(outcome, ApiError):
            raise outcome
        return outcome

    results: list[object] = []

    async def ask() -> None:
        try:
            results.append(await answers.once(("t", "k"), b"f", make, nursery))
        except ApiError as error:
            results.append(error.code)

    async with trio.open_nursery() as asking:
        asking.start_soon(ask)
        asking.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        go.set()
    assert sorted(results, key=str) == [(Answer(200, b"yes"), False), 50003]


async def test_a_client_that_gives_up_does_not_undo_it(nursery: trio.Nursery) -> None:
    answers = Answers(HandClock(), 1 << 20)
    go = trio.Event()

    async def make() -> Answer:
        await go.wait()
        return Answer(200, b"done")

    with trio.CancelScope() as scope:
        scope.cancel()
        await answers.once(("t", "k"), b"f", make, nursery)
    go.set()
    answer, replayed = await answers.once(("t", "k"), b"f", make, nursery)
    assert (answer.body, replayed) == (b"done", True)


async def test_memory_and_time_are_bounded(nursery: trio.Nursery) -> None:
    clock = HandClock()
    answers = Answers(clock, 100_000)

    async def make() -> Answer:
        return Answer(200, b"x" * 9000)

    for number in range(50):
        await answers.once(("t", str(number)), b"f", make, nursery)
        assert answers.bytes <= 100_000
    assert (await answers.once(("t", "49"), b"f", make, nursery))[1]
    assert not (await answers.once(("t", "0"), b"f", make, nursery))[1]
    clock.ms += int(TTL_S * 1000) + 1
    assert not (await answers.once(("t", "49"), b"f", make, nursery))[1]
    assert answers.bytes < 20_000

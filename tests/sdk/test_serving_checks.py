"""`check_handler`, and the check of served listeners in `check_service`: a good handler passes, and a bad one is told
what is wrong with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from types import ModuleType

import pytest
import trio

from leafcuttr_sdk import Broker, ByteStream, Plugin, ServiceSpec, Setting, serving_settings
from leafcuttr_sdk.testing import ContractError, check_handler, check_service
from leafcuttr_sdk.testing.service_checks import handler_report, service_report

Handle = Callable[[ByteStream], Awaitable[None]]
PREFIX = "lc.plugin.parcels"


async def echo(stream: ByteStream) -> None:
    async for data in stream:
        await stream.send_all(data)


def made(handler: Handle) -> Callable[[Broker], Handle]:
    return lambda broker: handler


def problems(handler: Handle) -> list[str]:
    with pytest.raises(ContractError) as caught:
        check_handler(made(handler))
    report = caught.value.report
    assert report.kind == "handler"
    assert all(check.name == "clients" for check in report.checks if check.problems), report
    return report.problems


def test_a_good_handler_passes() -> None:
    check_handler(made(echo))


@pytest.mark.long
def test_one_that_reads_settings_and_produces() -> None:
    def make(broker: Broker) -> Handle:
        topic = broker.settings.text(f"{PREFIX}.topic")

        async def handle(stream: ByteStream) -> None:
            async for data in stream:
                for line in data.split(b"\n")[:3]:
                    await broker.produce(topic, line)

        return handle

    check_handler(make, plugin=plugin(), settings={f"{PREFIX}.topic": "there"})


@pytest.mark.long
def test_one_that_pushes_while_it_listens() -> None:
    async def push(stream: ByteStream) -> None:
        async with trio.open_nursery() as nursery:

            async def tick() -> None:
                while True:
                    await stream.send_all(b"tick")
                    await trio.sleep(0.1)

            nursery.start_soon(tick)
            async for _ in stream:
                pass
            nursery.cancel_scope.cancel()

    check_handler(made(push))


@pytest.mark.long
def test_one_that_raises_for_garbage_is_told_for_which() -> None:
    async def handle(stream: ByteStream) -> None:
        async for data in stream:
            data.decode()

    found = problems(handle)
    assert any(
        "a client that sends text that is no UTF-8 made the handler raise Unicode" in one for one in found
    )
    assert all("test_serving_checks.py, line" in one for one in found)
    assert not any("zeros" in one for one in found)


@pytest.mark.long
def test_one_that_raises_where_a_client_leaves_is_told() -> None:
    async def handle(stream: ByteStream) -> None:
        data = await stream.receive_some()
        assert data, "nobody there"

    assert any(
        "leaves at once made the handler raise AssertionError: nobody there" in one
        for one in problems(handle)
    )


@pytest.mark.long
def test_one_that_does_not_notice_that_its_client_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leafcuttr_sdk.testing.serving_trial.END_S", 0.3)

    async def handle(stream: ByteStream) -> None:
        await trio.sleep_forever()

    line, _ = problems(handle)  # nor that its service is stopped
    assert "has gone, and its handler goes on" in line and 'return when receive_some gives b""' in line


@pytest.mark.long
def test_one_that_goes_on_after_the_stop() -> None:
    async def handle(stream: ByteStream) -> None:
        async for data in stream:
            if data == b"x":
                with trio.move_on_after(2.5, shield=True):
                    await trio.sleep_forever()

    assert any("went on 2 s after its service was stopped" in one for one in problems(handle))


def plugin() -> ModuleType:
    def leafcuttr_register_settings() -> Iterable[Setting]:
        from leafcuttr_sdk import Type

        yield Setting(f"{PREFIX}.topic", Type.STRING, "lines", "Where to.")
        yield from serving_settings(PREFIX, 0, "127.0.0.1")

    module = ModuleType("parcels")
    vars(module).update(
        PLUGIN=Plugin("parcels", 1, "for tests"), leafcuttr_register_settings=leafcuttr_register_settings
    )
    return module


class Serving:
    handler: Handle = staticmethod(echo)

    def __init__(self, broker: Broker) -> None:
        self.broker = broker

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        await self.broker.serve(PREFIX, self.handler, task_status=task_status)


class Failing(Serving):
    @staticmethod
    async def handler(stream: ByteStream) -> None:
        raise SystemExit("always")


@pytest.mark.long
def test_a_service_that_serves_has_the_check_too() -> None:
    check_service(ServiceSpec("parcels", Serving), plugin=plugin())
    names = [check.name for check in service_report(ServiceSpec("parcels", Serving), plugin()).checks]
    assert "clients" in names
    with pytest.raises(ContractError, match="made the handler raise SystemExit: always"):
        check_service(ServiceSpec("parcels", Failing), plugin=plugin())


@pytest.mark.long
def test_a_service_that_serves_over_a_unix_socket(tmp_path: object) -> None:
    settings = {f"{PREFIX}.port": -1, f"{PREFIX}.unix.path": f"{tmp_path}/s"}
    report = service_report(ServiceSpec("parcels", Serving), plugin(), settings)
    assert report.fine and report.checks[-1].name == "clients"


@pytest.mark.long
def test_a_service_without_a_listener_has_it_not() -> None:
    class Quiet:
        def __init__(self, broker: Broker) -> None: ...

        async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
            task_status.started()
            await trio.sleep_forever()

    report = service_report(ServiceSpec("quiet", Quiet))
    assert report.fine and "clients" not in [check.name for check in report.checks]


# send_now


async def sends_the_rest_next(stream: ByteStream) -> None:
    async for data in stream:
        sent = stream.send_now(data)
        await stream.send_all(data[sent:])


async def sends_the_rest_and_more(stream: ByteStream) -> None:
    """As a handler that gathers: what comes later goes behind the rest."""
    rest = b""
    async for data in stream:
        rest += data
        rest = rest[stream.send_now(rest) :]
        rest = rest[stream.send_now(rest[:2]) :]
    await stream.send_all(rest)


async def forgets_the_rest(stream: ByteStream) -> None:
    async for data in stream:
        stream.send_now(b"you sent ")
        stream.send_now(data)


async def ends_with_the_rest(stream: ByteStream) -> None:
    data = await stream.receive_some()
    if data:
        stream.send_now(b"good bye")


@pytest.mark.long
def test_what_send_now_has_not_taken_is_sent_next() -> None:
    for good in (sends_the_rest_next, sends_the_rest_and_more):
        report = handler_report(made(good), requests=[b"hello\n"])
        assert report.fine, report.problems
        assert "sends now" in [check.name for check in report.checks]
    assert "sends now" not in [check.name for check in handler_report(made(echo)).checks], "it uses it not"


@pytest.mark.one_in(2)
@pytest.mark.parametrize("requests", [(), pytest.param((b"hello\n",), marks=pytest.mark.long)])
def test_what_loses_bytes_is_told(requests: tuple[bytes, ...]) -> None:
    for bad, said in (
        (forgets_the_rest, "and other bytes were sent next: keep the rest"),
        (ends_with_the_rest, "its handler ended with "),
    ):
        (check,) = (
            each for each in handler_report(made(bad), requests=requests).checks if each.name == "sends now"
        )
        assert any(said in problem for problem in check.problems), check


@pytest.mark.long
def test_requests_are_sent_whole_and_byte_by_byte() -> None:
    seen: list[bytes] = []

    async def handle(stream: ByteStream) -> None:
        got = b""
        async for data in stream:
            got += data
            if got == b"hello":
                await stream.send_all(b"!")
        seen.append(got)

    check_handler(made(handle), requests=[b"hello"])
    assert seen.count(b"hello") == 2


@pytest.mark.long
def test_one_that_fails_for_a_request_is_told() -> None:
    async def handle(stream: ByteStream) -> None:
        async for data in stream:
            assert data != b"hello", "no hellos"

    with pytest.raises(ContractError) as caught:
        check_handler(made(handle), requests=[b"hello"])
    (line,) = caught.value.report.problems
    assert line.startswith("a client that sends request 1 and reads the answer made the handler raise Assert")

"""The formats of a scrape, and that it does not hold the loop."""

from __future__ import annotations

import gzip
from collections.abc import Awaitable, Callable

import pytest
import trio
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from leafcuttr.metrics.catalog import METRICS
from leafcuttr.state.broker import Broker
from leafcuttr_sdk.metrics import Kind
from support.peer import connect, metadata_request
from support.scraper import Scraper

Serve = Callable[..., Awaitable[Broker]]


async def test_text_and_openmetrics_have_the_same_series(serve: Serve) -> None:
    broker = await serve()
    async with await connect(broker) as peer:
        await peer.ask(metadata_request("t"), 12)
    scraper = Scraper(broker)
    text, kind = await scraper.text()
    assert kind.startswith("text/plain; version=")
    assert b"# EOF" not in text
    accept = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75"
    open_text, open_kind = await scraper.text(accept)
    assert open_kind.startswith("application/openmetrics-text; version=")
    assert open_text.endswith(b"\n# EOF\n") and open_text.count(b"# EOF") == 1
    names = {sample.name for family in parse_text(text.decode()) for sample in family.samples}
    opened = {sample.name for family in parse_openmetrics(open_text.decode()) for sample in family.samples}
    assert names == opened


async def test_gzip_where_it_is_taken(serve: Serve) -> None:
    scraper = Scraper(await serve())
    plain, _ = await scraper.text(encoding="deflate, gzip;q=0")
    assert plain.startswith(b"# HELP")
    squeezed, _ = await scraper.text(encoding="br, gzip")
    assert gzip.decompress(squeezed).startswith(b"# HELP")


async def test_single_metrics_may_be_requested(serve: Serve) -> None:
    scraper = Scraper(await serve())
    text, _ = await scraper.text(names=("leafcuttr_loop_delay_seconds_bucket", "kafka_log_log_size"))
    assert [family.name for family in parse_text(text.decode())] == [
        "kafka_log_log_size",
        "leafcuttr_loop_delay_seconds",
    ]


async def test_a_long_family_has_one_header(serve: Serve) -> None:
    broker = await serve({"num.partitions": "250"})
    async with await connect(broker) as peer:
        await peer.ask(metadata_request("t"), 12)
    text, _ = await Scraper(broker).text()
    lines = text.decode().splitlines()
    for metric in METRICS.values():
        assert (
            lines.count(f"# TYPE {metric.name} {'gauge' if metric.kind is Kind.INFO else metric.kind.value}")
            == 1
        )
    assert sum(line.startswith("kafka_log_log_size{") for line in lines) == 250


@pytest.mark.long
async def test_others_have_their_turn_during_a_scrape(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """With turns of no length the loop goes round after every step: every hundred samples of a family."""
    broker = await serve({"num.partitions": "1000"})
    async with await connect(broker) as peer:
        await peer.ask(metadata_request("t"), 12)
    scraper = Scraper(broker)
    await scraper.text()
    monkeypatch.setattr("leafcuttr.runtime.pacing.TURN_S", 0.0)
    rounds = 0

    async def count() -> None:
        nonlocal rounds
        while True:
            await trio.lowlevel.checkpoint()
            rounds += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        await scraper.text()
        nursery.cancel_scope.cancel()
    assert rounds > 6 * 1000 / 100

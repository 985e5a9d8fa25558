"""A scrape: prometheus_client's text or OpenMetrics, written in steps of some samples so that the loop serves others.

prometheus_client writes a whole registry in one go, which takes half a second for 10,000 partitions. Here it gets one
family at a time, and of a long one fifty samples at a time; the header of what continues a family is left out.
"""

import zlib
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import trio

from leafcuttr.metrics.counts import Distribution, Times
from leafcuttr.runtime.pacing import Pace
from leafcuttr.server.admin.gathering import Families, Gatherer, Sample
from leafcuttr.server.admin.router import Request, Response
from leafcuttr_sdk.metrics import Kind, Metric

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family

_SAMPLES: Final = 50  # written at once: a quarter of a millisecond
_HISTOGRAMS: Final = 3
_PIECE: Final = 32 * 1024
_GZIP_LEVEL: Final = 1
_EOF: Final = b"# EOF\n"

Encode = Callable[[Any], bytes]


class Scrapes:
    """Answers scrapes of one broker."""

    def __init__(self, families: Families, gatherer: Gatherer) -> None:
        self._families = families
        self._gatherer = gatherer

    async def __call__(self, request: Request) -> Response:
        """`name[]=METRIC` in the query, once or more, selects these only."""
        encode, content_type = await trio.to_thread.run_sync(_encoder, request.headers.get("accept", ""))
        headers: tuple[tuple[str, str], ...] = (("Vary", "Accept, Accept-Encoding"),)
        body = self._text(request.query.get("name[]", ()), encode, content_type)
        if _takes_gzip(request.headers.get("accept-encoding", "")):
            headers += (("Content-Encoding", "gzip"),)
            body = _gzipped(body)
        return Response(body, content_type, headers=headers)

    async def _text(
        self, names: Sequence[str], encode: Encode, content_type: str
    ) -> AsyncGenerator[bytes, None]:
        began = trio.current_time()
        gathered = await self._gatherer.gather()
        piece = bytearray()
        for metric, reading in self._families.items(names):
            at_once = _HISTOGRAMS if metric.kind is Kind.HISTOGRAM else _SAMPLES
            samples, first = iter(reading(gathered)), True
            some = list(islice(samples, at_once))
            while first or some:
                piece += _written(encode, metric, some, first)
                first = False
                await Pace.give_way()  # shorter turns than others have: requests do not wait for a scrape
                some = list(islice(samples, at_once))
                if len(piece) >= _PIECE:
                    yield bytes(piece)
                    piece.clear()
        if "openmetrics" in content_type:
            piece += _EOF
        yield bytes(piece)
        self._gatherer.scrape_seconds = trio.current_time() - began


def _encoder(accept: str) -> tuple[Encode, str]:
    """In a worker thread: the first call imports prometheus_client, which takes a tenth of a second."""
    from prometheus_client.exposition import choose_encoder

    encode, content_type = choose_encoder(accept)
    return encode, content_type


def _written(encode: Encode, metric: Metric, samples: Iterable[Sample], first: bool) -> bytes:
    text = encode(_OneFamily(metric, samples)).removesuffix(_EOF)
    while not first and text.startswith(b"# "):
        text = text[text.index(b"\n") + 1 :]
    return text


class _OneFamily:
    """What prometheus_client takes for a registry."""

    def __init__(self, metric: Metric, samples: Iterable[Sample]) -> None:
        self._metric = metric
        self._samples = samples

    def collect(self) -> "Iterator[Family]":
        from prometheus_client.core import Metric as Family

        metric = self._metric
        family = Family(metric.family, metric.help, metric.kind.value)
        for values, value in self._samples:
            labels = dict(zip(metric.labels, values, strict=True))
            if isinstance(value, (Times, Distribution)):
                _add_histogram(family, labels, value)
            else:
                family.add_sample(metric.name, labels, value)
        yield family


def _add_histogram(family: "Family", labels: dict[str, str], found: Times | Distribution) -> None:
    for bound, count in found.cumulative():
        family.add_sample(
            f"{family.name}_bucket", {**labels, "le": "+Inf" if bound == float("inf") else repr(bound)}, count
        )
    family.add_sample(f"{family.name}_sum", labels, found.total)
    family.add_sample(f"{family.name}_count", labels, found.count)


def _takes_gzip(accepted: str) -> bool:
    for coding in accepted.split(","):
        name, _, parameter = coding.partition(";")
        if name.strip().lower() == "gzip":
            return parameter.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


async def _gzipped(body: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    squeeze = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    try:
        async for piece in body:
            out = squeeze.compress(piece)
            if out:
                yield out
    finally:
        await body.aclose()
    yield squeeze.flush()

"""Kafka's protocol as one client sees one connection, without I/O: requests in, bytes out; bytes in, events out.

    protocol = ClientProtocol("10.0.0.7:9092")
    protocol.start()                                  # ApiVersions, before all else
    send(protocol.data_to_send())                     # whenever something was sent, or an event was taken
    size = recv_into(protocol.buffer())
    protocol.received(size)
    while (event := protocol.next_event()) is not None:
        ...                                           # Ready, then an Answered for each request, in order

Theory of operation. A broker answers the requests of a connection in their order (Kafka's protocol guide, "Network"),
so an answer always belongs to the oldest request, and has to carry its correlation id. What was sent and has no answer
yet is `under_way`; a request without an answer (Produce with acks=0) is not. The first request is ApiVersions in the
newest version: a broker that does not know it answers UNSUPPORTED_VERSION in version 0, with the versions that it has
(KIP-511), and the request goes out again in one of these. Until `Ready` nothing else is sent.

A frame is received into memory of its own, which grows with what has come, not with what the peer claims; records in an
answer are views of it. Whatever is wrong with the bytes is NotKafka or UnreadableResponse, and then the connection has
to be closed: nothing says where the next frame begins.
"""

from collections import deque
from collections.abc import Sequence
from struct import Struct
from typing import Any, Final, NamedTuple

from leafcuttr.client.errors import ApiNotOffered, NotKafka, UnreadableResponse, reason
from leafcuttr.errors import ErrorCode
from leafcuttr.wire.api import APIS, Api, ApiKey
from leafcuttr.wire.codec import Region, reader, writer
from leafcuttr.wire.errors import MalformedMessage, ManyElements, WireError
from leafcuttr.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from leafcuttr.wire.primitives import read_unsigned_varint

MAX_FRAME: Final = 100 << 20
"""The largest answer that is read, in bytes: what brokers take of requests, `socket.request.max.bytes`."""
MAX_ELEMENTS: Final = 2_000_000
"""The most array elements of an answer: a cluster of 100,000 partitions with three replicas has 800,000."""
_AT_ONCE: Final = 20_000
"""As many are read within some 20 ms."""
_MUCH: Final = 64 << 10
"""Bytes of an answer that is not about records: an element may take only one of them."""
_SCRATCH: Final = 64 << 10
_FIRST: Final = 1 << 20
"""What a frame gets at first; then it doubles. One that is no larger than one before gets its memory at once."""
_HEAD: Final = Struct(">hhih")
_API_VERSIONS: Final = APIS[ApiKey.API_VERSIONS]
_BY_MODULE: Final = {api.module: api for api in APIS.values()}

VersionRanges = dict[int, tuple[int, int]]
Piece = bytes | bytearray | memoryview


class GatheredRecords(NamedTuple):
    """Records of a request in several pieces, which are sent as they are and never joined. For a records field."""

    pieces: Sequence[Piece]
    length: int


class Ready(NamedTuple):
    """The versions are known, and requests can be sent."""

    about: ApiVersionsResponse


class Answered(NamedTuple):
    """The answer to the oldest request. `read` makes the response of it."""

    peer: str
    correlation_id: int
    api: Api
    version: int
    body: memoryview

    @property
    def has_much(self) -> bool:
        """Whether `read` may take so long that an event loop should leave it to a thread."""
        return len(self.body) > _MUCH and self.api.key not in (ApiKey.FETCH, ApiKey.PRODUCE)

    def read(self) -> Any:
        """The response; its records are views of the frame. Raises UnreadableResponse."""
        try:
            return _decode(self.api.response, self.version, self.body)
        except WireError as error:
            raise UnreadableResponse(
                f"{self.peer}: its answer to {self.api.name} cannot be read: {error}", bytes(self.body[:40])
            ) from None


class _Sent(NamedTuple):
    correlation_id: int
    api: Api
    version: int


class ClientProtocol:
    """One connection. `peer` is the broker's address, for the texts of errors."""

    def __init__(
        self,
        peer: str,
        *,
        client_id: str = "leafcuttr",
        software: str = "leafcuttr",
        max_frame: int = MAX_FRAME,
    ) -> None:
        self.peer = peer
        self.versions: VersionRanges = {}
        """By API key the lowest and the highest version that the broker offers; empty before `Ready`."""
        self._client_id = client_id.encode()
        self._software = software
        self._correlation = 0
        self._under_way: deque[_Sent] = deque()
        self._out: list[Piece] = []
        self._frames = FrameReader(peer, max_frame)
        self._ready = False

    @property
    def under_way(self) -> int:
        """How many requests were sent and have no answer yet."""
        return len(self._under_way)

    @property
    def oldest(self) -> str | None:
        """The name of the API whose answer is expected next."""
        return self._under_way[0].api.name if self._under_way else None

    def start(self) -> None:
        """Send ApiVersions."""
        self._send_api_versions(_API_VERSIONS.max_version)

    def send(self, request: Any, *, at_least: int = 0, at_most: int | None = None) -> int | None:
        """Send a request in the highest version that both sides have; returns its correlation id, or None if it has no
        answer. `at_least` and `at_most` are the versions that can carry it. Raises ApiNotOffered, and WireError for a
        request that cannot be written: then nothing was sent.
        """
        api = api_of(request)
        return self._send(api, request, self.version_of(api, at_least, at_most))

    def version_of(self, api: Api, at_least: int = 0, at_most: int | None = None) -> int:
        """The version in which `send` sends. Raises ApiNotOffered."""
        if api.key not in self.versions:
            raise ApiNotOffered(f"the broker at {self.peer} does not offer {api.name}")
        first, last = self.versions[api.key]
        newest = api.max_version if at_most is None else min(at_most, api.max_version)
        version = min(last, newest)
        wanted = max(api.min_version, at_least)
        if version < max(first, wanted):
            raise ApiNotOffered(
                f"the broker at {self.peer} speaks versions {first} to {last} of {api.name}; this needs {wanted} to "
                f"{newest}"
            )
        return version

    @property
    def has_data_to_send(self) -> bool:
        """Whether `data_to_send` has something: after an event too, which may be answered by another request."""
        return bool(self._out)

    def data_to_send(self) -> list[Piece]:
        """What is to be sent since the last call."""
        out, self._out = self._out, []
        return out

    def buffer(self) -> memoryview:
        """Where the next bytes belong: at least one byte. Valid until `received`."""
        return self._frames.buffer()

    def received(self, size: int) -> None:
        """So many bytes are in the buffer. Raises NotKafka."""
        try:
            self._frames.received(size)
        except NotKafka as error:
            raise self._as_known(error) from None

    def next_event(self) -> Ready | Answered | None:
        """None: more bytes are needed. Raises NotKafka, UnreadableResponse, and ApiNotOffered where the broker refuses
        ApiVersions."""
        while (frame := self._frames.next_frame()) is not None:
            answer = self._answer(frame)
            if self._ready:
                return answer
            if (ready := self._greeted(answer)) is not None:
                return ready
        return None

    def cut_off(self) -> bytes:
        """What came of a frame that is not whole: the peer's last words."""
        return self._frames.begun()

    def _send_api_versions(self, version: int) -> None:
        from leafcuttr.version import __version__

        request = ApiVersionsRequest(client_software_name=self._software, client_software_version=__version__)
        self._send(_API_VERSIONS, request, version)

    def _send(self, api: Api, request: Any, version: int) -> int | None:
        out, regions = bytearray(4), list[Region]()
        correlation = self._correlation + 1 & 0x7FFFFFFF
        out += _HEAD.pack(api.key, version, correlation, len(self._client_id)) + self._client_id
        if api.request_header_version(version) > 1:
            out.append(0)
        writer(type(request), version)(request, out, regions)
        size = len(out) - 4 + sum(records.length for _, records in regions)
        out[:4] = size.to_bytes(4, "big")
        self._correlation = correlation
        self._out += _with_records(out, regions) if regions else (out,)
        if api.key == ApiKey.PRODUCE and request.acks == 0:
            return None
        self._under_way.append(_Sent(correlation, api, version))
        return correlation

    def _answer(self, frame: memoryview) -> Answered:
        correlation = int.from_bytes(frame[:4], "big", signed=True)
        if not self._under_way or correlation != self._under_way[0].correlation_id:
            what = f"its answer to {self.oldest} cannot be read: an answer to another request"
            raise UnreadableResponse(
                f"{self.peer}: {what if self._under_way else 'an answer to no request'}", bytes(frame[:40])
            )
        sent = self._under_way.popleft()
        at = 4
        try:
            if sent.api.response_header_version(sent.version):
                at = _skip_tags(frame, at)
        except MalformedMessage as error:
            raise UnreadableResponse(
                f"{self.peer}: its answer to {sent.api.name} cannot be read: {error}", bytes(frame[:40])
            ) from None
        return Answered(self.peer, correlation, sent.api, sent.version, frame[at:])

    def _greeted(self, answer: Answered) -> Ready | None:
        if answer.body[:2] == ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big"):
            about: ApiVersionsResponse = answer._replace(version=0).read()
            # KIP-511. Brokers before 2.4 do not say what they speak.
            offered = [key.max_version for key in about.api_keys if key.api_key == ApiKey.API_VERSIONS]
            version = min(max(offered, default=0), answer.version - 1)
            if version >= 0:
                self._send_api_versions(version)
                return None
        else:
            about = answer.read()
        if about.error_code:
            raise ApiNotOffered(f"{self.peer} refuses ApiVersions: {reason(about.error_code)}")
        self.versions = {key.api_key: (key.min_version, key.max_version) for key in about.api_keys}
        self._ready = True
        return Ready(about)

    def _as_known(self, error: NotKafka) -> NotKafka:
        """Of a peer that has answered before, a size is only too large."""
        return (
            error if self.versions else NotKafka(f"{self.peer} does not speak Kafka's protocol", error.said)
        )


class FrameReader:
    """Frames out of a stream of bytes: four bytes of length, then the frame, each in memory of its own.

    Small frames are copied out of one buffer; into a large one the rest is received directly.
    """

    def __init__(self, peer: str, max_frame: int) -> None:
        self._peer = peer
        self._max = max_frame
        self._scratch = bytearray(_SCRATCH)
        self._start = self._end = 0
        self._large: bytearray | None = None
        self._have = self._size = 0
        self._first = _FIRST  # what a large frame gets at first: as much as the peer has sent in one before
        self._done: deque[memoryview] = deque()

    def buffer(self) -> memoryview:
        if self._large is not None:
            return memoryview(self._large)[self._have :]
        return memoryview(self._scratch)[self._end :]

    def received(self, size: int) -> None:
        """Raises NotKafka for a length that no answer has."""
        if self._large is not None:
            self._have += size
            if self._have == self._size:
                self._finish(self._large)
            elif self._have == len(self._large):
                self._large = self._grown(self._large)
            return
        self._end += size
        self._split()

    def next_frame(self) -> memoryview | None:
        return self._done.popleft() if self._done else None

    def begun(self) -> bytes:
        return bytes(self._scratch[self._start : self._end])

    def _split(self) -> None:
        scratch = self._scratch
        while self._end - self._start >= 4:
            size = int.from_bytes(scratch[self._start : self._start + 4], "big", signed=True)
            if not 4 <= size <= self._max:
                raise NotKafka(
                    f"{self._peer} announces an answer of {size} bytes; at most {self._max} are read",
                    self.begun(),
                )
            begin, end = self._start + 4, self._start + 4 + size
            if end > self._end:
                if end > len(scratch):
                    self._begin_large(begin, size)
                return
            self._done.append(memoryview(scratch[begin:end]))
            self._start = end
        self._compact()

    def _compact(self) -> None:
        if self._start:
            left = self._end - self._start
            self._scratch[:left] = self._scratch[self._start : self._end]
            self._start, self._end = 0, left

    def _begin_large(self, begin: int, size: int) -> None:
        have = self._end - begin
        large = bytearray(min(size, max(self._first, 2 * have)))
        large[:have] = memoryview(self._scratch)[begin : self._end]
        self._start = self._end = 0
        self._large, self._have, self._size = large, have, size

    def _grown(self, large: bytearray) -> bytearray:
        grown = bytearray(min(self._size, 2 * len(large)))
        grown[: len(large)] = large
        return grown

    def _finish(self, large: bytearray) -> None:
        self._done.append(memoryview(large))
        self._first = max(self._first, len(large))
        self._large = None


def api_of(request: Any) -> Api:
    """The API of a request's class."""
    return _BY_MODULE[type(request).__module__.rpartition(".")[2]]


def _with_records(out: bytearray, regions: list[Region]) -> list[Piece]:
    """The bytes with the records between them, where they belong."""
    pieces: list[Piece] = []
    view, at = memoryview(out), 0
    for position, records in regions:
        pieces += (view[at:position], *records.pieces)
        at = position
    if at < len(out):
        pieces.append(view[at:])
    return pieces


def _decode(kind: type[Any], version: int, body: memoryview) -> Any:
    read = reader(kind, version)
    try:
        response, at = read(body, 0, len(body), _AT_ONCE)
    except ManyElements:
        response, at = read(body, 0, len(body), MAX_ELEMENTS)
    if at != len(body):
        raise MalformedMessage(f"{kind.__name__}: {len(body) - at} bytes are left over at byte {at}")
    return response


def _skip_tags(frame: memoryview, at: int) -> int:
    count, at = read_unsigned_varint(frame, at)
    for _ in range(count):
        _, at = read_unsigned_varint(frame, at)
        size, at = read_unsigned_varint(frame, at)
        at += size
        if at > len(frame):
            raise MalformedMessage("a tagged field of the header exceeds the frame")
    return at

"""Kafka's requests over one connection: framing, correlation, versions, time. The transport of all our own clients.

Each way in which a peer can fail to answer is an exception of its own, and TLS is supported. `connection` says it to
a person in the commands, and `leafcuttr.cli.doctor` in its findings.
"""

import socket
import ssl
import time
from struct import Struct
from types import TracebackType
from typing import Any, Final, Self

from leafcuttr.client.protocol import VersionRanges
from leafcuttr.errors import ErrorCode
from leafcuttr.wire.api import APIS, Api, ApiKey
from leafcuttr.wire.client_apis import CLIENT_APIS
from leafcuttr.wire.codec import decode, encode
from leafcuttr.wire.errors import MalformedMessage, WireError
from leafcuttr.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from leafcuttr.wire.primitives import read_unsigned_varint

MAX_FRAME: Final = 100 << 20
"""The largest answer that is read, in bytes: what brokers take of requests, `socket.request.max.bytes`."""
_PIECE: Final = 256 << 10
_MORE_S: Final = 0.3
_HEAD: Final = Struct(">hhih")
_API_VERSIONS: Final = APIS[ApiKey.API_VERSIONS]
_BY_MODULE: Final = {api.module: api for api in (*APIS.values(), *CLIENT_APIS.values())}


class NotKafkaError(Exception):
    """The peer sent something that is no response; `said` are its first bytes."""

    def __init__(self, said: bytes) -> None:
        super().__init__(repr(said[:40]))
        self.said = said


class UnreadableError(NotKafkaError):
    """A frame came that is no answer to the request; the text says why not."""

    def __init__(self, said: bytes, why: str) -> None:
        super().__init__(said)
        self.why = why

    def __str__(self) -> str:
        return self.why


class HungUpError(ConnectionError):
    """The peer closed the connection instead of answering."""


class NotOfferedError(Exception):
    """The broker does not have an API, or no version of it that we speak: the text continues after its name."""


class Channel:
    """One connection, one request at a time, each answered within `timeout` seconds.

    All methods raise OSError (TimeoutError, HungUpError, ssl.SSLError) and NotKafkaError.
    """

    def __init__(
        self,
        address: tuple[str, int],
        timeout: float,
        *,
        connect_timeout: float | None = None,
        tls: ssl.SSLContext | None = None,
        software: str = "leafcuttr-cli",
    ) -> None:
        self.timeout = timeout
        self.versions: VersionRanges = {}
        """By API key the lowest and the highest version that the broker offers; empty before `greet`."""
        self._software = software
        self._client_id = software.encode()
        self._correlation = 0
        self._socket = socket.create_connection(
            address, timeout if connect_timeout is None else connect_timeout
        )
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls is not None:
                self._socket = tls.wrap_socket(self._socket, server_hostname=address[0])
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def greet(self) -> ApiVersionsResponse:
        """Learn which APIs the broker has; needed before `send`. The response may be an error."""
        from leafcuttr.version import __version__

        request = ApiVersionsRequest(client_software_name=self._software, client_software_version=__version__)
        answer = self._exchange(_API_VERSIONS, request, _API_VERSIONS.max_version)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            # KIP-511: an older broker answers in version 0, and newer ones of those say what they speak.
            offered = [key.max_version for key in answer.api_keys if key.api_key == ApiKey.API_VERSIONS]
            version = min(max(offered, default=0), _API_VERSIONS.max_version)
            answer = self._exchange(_API_VERSIONS, request, version)
        found: ApiVersionsResponse = answer
        self.versions = {key.api_key: (key.min_version, key.max_version) for key in found.api_keys}
        return found

    def send(self, request: Any, *, at_least: int = 0) -> Any:
        """The answer to a request, in the highest version that both sides speak.

        `at_least` is the lowest version that can carry the request. Raises NotOfferedError too, and WireError for a
        request that cannot be written.
        """
        api = api_of(request)
        return self._exchange(api, request, self._version(api, at_least))

    def _version(self, api: Api, at_least: int) -> int:
        if api.key not in self.versions:
            raise NotOfferedError(f"does not offer {api.name}")
        first, last = self.versions[api.key]
        version = min(last, api.max_version)
        wanted = max(api.min_version, at_least)
        if version < max(first, wanted):
            raise NotOfferedError(
                f"speaks versions {first} to {last} of {api.name}; this needs {wanted} to {api.max_version}"
            )
        return version

    def _exchange(self, api: Api, request: Any, version: int) -> Any:
        body = encode(request, version)
        self._correlation += 1
        head = _HEAD.pack(api.key, version, self._correlation, len(self._client_id)) + self._client_id
        if api.request_header_version(version) > 1:
            head += b"\0"
        deadline = time.monotonic() + self.timeout
        try:
            self._socket.settimeout(self.timeout)
            self._socket.sendall((len(head) + len(body)).to_bytes(4, "big") + head + body)
            frame = self._frame(deadline)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise HungUpError("the connection was reset") from error
        return self._read(api, version, frame)

    def _read(self, api: Api, version: int, frame: memoryview) -> Any:
        try:
            if int.from_bytes(frame[:4], "big", signed=True) != self._correlation:
                raise MalformedMessage("an answer to another request")
            at = 4
            if api.response_header_version(version):
                at = _skip_tags(frame, at)
            body = frame[at:]
            unsupported = body[:2] == ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")
            return decode(api.response, 0 if api is _API_VERSIONS and unsupported else version, body)
        except WireError as error:
            raise UnreadableError(bytes(frame), str(error)) from None

    def _frame(self, deadline: float) -> memoryview:
        head = self._exactly(4, deadline)
        size = int.from_bytes(head, "big", signed=True)
        if not 4 <= size <= MAX_FRAME:
            raise NotKafkaError(bytes(head) + self._more())
        return memoryview(self._exactly(size, deadline))

    def _exactly(self, size: int, deadline: float) -> bytearray:
        # Grows with what has come, not with what is claimed.
        data = bytearray()
        while len(data) < size:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("no answer in time")
            self._socket.settimeout(left)
            piece = self._socket.recv(min(size - len(data), _PIECE))
            if not piece:
                if data and not self.versions:
                    raise NotKafkaError(bytes(data))
                raise HungUpError("the connection was closed")
            data += piece
        return data

    def _more(self) -> bytes:
        """More of what a peer that speaks another protocol has said, to show it."""
        if self.versions:
            return b""
        try:
            self._socket.settimeout(_MORE_S)
            return self._socket.recv(200)
        except OSError:
            return b""


def at(host: str, port: int) -> str:
    """`host:port` as clients write it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def api_of(request: Any) -> Api:
    """The API of a request's class."""
    return _BY_MODULE[type(request).__module__.rpartition(".")[2]]


def _skip_tags(frame: memoryview, at: int) -> int:
    count, at = read_unsigned_varint(frame, at)
    for _ in range(count):
        _, at = read_unsigned_varint(frame, at)
        size, at = read_unsigned_varint(frame, at)
        at += size
        if at > len(frame):
            raise MalformedMessage("a tagged field of the header exceeds the frame")
    return at

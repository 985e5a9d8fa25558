"""A connection to whatever listens at an address, and Kafka's requests over it: the doctor's own small client.

librdkafka hides what is wrong behind its retries, and the connection of `cli.wire_client` makes of every failure the
one line that ends a command. Here each way in which a peer can fail to answer has a name of its own, and TLS is spoken.
Nothing is judged here.
"""

import contextlib
import socket
import ssl
import struct
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from leafcuttr.wire.api import APIS, ApiKey
from leafcuttr.wire.codec import decode, encode
from leafcuttr.wire.errors import MalformedMessage
from leafcuttr.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

_LARGEST_ANSWER = 100 << 20
_CLIENT_ID = b"leafcuttr-doctor"
_UNSUPPORTED_VERSION = 35

Versions = Mapping[int, tuple[int, int]]
"""By API key the lowest and the highest version."""


class NotKafkaError(Exception):
    """The peer said something that is no answer; `said` are its first bytes."""

    def __init__(self, said: bytes) -> None:
        super().__init__(repr(said[:40]))
        self.said = said


class HungUpError(ConnectionError):
    """The peer closed the connection instead of answering."""


class TooOldError(Exception):
    """The broker has no version of an API that this client knows."""


class Peer:
    """One connection, one request at a time.

    All calls raise OSError (TimeoutError after `timeout` seconds without a byte, HungUpError), ssl.SSLError and
    NotKafkaError.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._correlation = 0
        self.versions: Versions = {}

    @classmethod
    def connect(cls, host: str, port: int, timeout: float, tls: ssl.SSLContext | None = None) -> Self:
        sock = socket.create_connection((host, port), timeout)
        if tls is not None:
            try:
                sock = tls.wrap_socket(sock, server_hostname=host)
            except BaseException:
                sock.close()
                raise
        return cls(sock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()

    def learn_versions(self) -> Versions:
        """Ask which APIs the broker has. Needed before `ask`."""
        answer = self._request(
            ApiKey.API_VERSIONS,
            ApiVersionsRequest(client_software_name="leafcuttr-doctor", client_software_version="1"),
            3,
        )
        (code,) = struct.unpack_from(">h", answer)
        if code == _UNSUPPORTED_VERSION:  # KIP-511: older than Kafka 2.4, and the answer is one of version 0
            answer = self._request(ApiKey.API_VERSIONS, ApiVersionsRequest(), 0)
        found: ApiVersionsResponse = _decoded(
            ApiVersionsResponse, 0 if code == _UNSUPPORTED_VERSION else 3, answer
        )
        self.versions = {api.api_key: (api.min_version, api.max_version) for api in found.api_keys}
        return self.versions

    def ask(self, key: ApiKey, request: Any, *, at_most: int | None = None) -> Any:
        """The answer in the highest version that both sides know. Raises TooOldError too."""
        api = APIS[key]
        lowest, highest = self.versions.get(key, (1, 0))
        version = min(highest, api.max_version if at_most is None else at_most)
        if version < max(lowest, api.min_version):
            raise TooOldError(f"{api.name}: the broker has {_span(lowest, highest)}")
        return _decoded(api.response, version, self._request(key, request, version))

    def _request(self, key: ApiKey, request: Any, version: int) -> bytes:
        api = APIS[key]
        self._correlation += 1
        head = struct.pack(">hhih", key, version, self._correlation, len(_CLIENT_ID)) + _CLIENT_ID
        if api.request_header_version(version) > 1:
            head += b"\0"
        frame = head + encode(request, version)
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)
        size_bytes = self._exactly(4)
        (size,) = struct.unpack(">i", size_bytes)
        if not 6 <= size <= _LARGEST_ANSWER:
            raise NotKafkaError(size_bytes + self._what_else())
        body = self._exactly(size)
        (correlation,) = struct.unpack_from(">i", body)
        if correlation != self._correlation:
            raise NotKafkaError(size_bytes + body)
        return body[4 + api.response_header_version(version) :]

    def _exactly(self, size: int) -> bytes:
        got = bytearray()
        while len(got) < size:
            try:
                chunk = self._socket.recv(min(size - len(got), 1 << 20))
            except ConnectionResetError as error:
                raise HungUpError("the connection was reset") from error
            if not chunk:
                if got:
                    raise NotKafkaError(bytes(got))
                raise HungUpError("the connection was closed")
            got += chunk
        return bytes(got)

    def _what_else(self) -> bytes:
        """What the peer has said beside: only to show it."""
        with contextlib.suppress(OSError):
            self._socket.settimeout(0.3)
            return self._socket.recv(200)
        return b""


def say_first(host: str, port: int, words: bytes, timeout: float) -> bytes:
    """What a peer answers to `words`, at most 200 bytes; empty if nothing within `timeout`."""
    with contextlib.suppress(OSError), socket.create_connection((host, port), timeout) as sock:
        sock.sendall(words)
        until = time.monotonic() + timeout
        got = b""
        while len(got) < 200 and (left := until - time.monotonic()) > 0:
            sock.settimeout(left)
            chunk = sock.recv(200)
            if not chunk:
                break
            got += chunk
            if b"\n" in got:
                break
        return got
    return b""


def _decoded(kind: Any, version: int, body: bytes) -> Any:
    try:
        return decode(kind, version, body)
    except MalformedMessage:
        raise NotKafkaError(body) from None


def _span(lowest: int, highest: int) -> str:
    return "none" if highest < lowest else f"{lowest} to {highest}"

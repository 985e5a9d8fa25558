"""One connection to one broker: framing, versions, timeouts. Which broker to ask is the business of `cluster`."""

import socket
import struct
import time
from types import TracebackType
from typing import Any, Final

from leafcuttr.cli.failures import Failure, reason
from leafcuttr.errors import ErrorCode
from leafcuttr.wire.api import APIS, Api, ApiKey
from leafcuttr.wire.asked import ASKED_APIS
from leafcuttr.wire.codec import decode, encode
from leafcuttr.wire.errors import MalformedMessage, WireError
from leafcuttr.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from leafcuttr.wire.primitives import read_unsigned_varint

CONNECT_S: Final = 5.0
MAX_FRAME: Final = 100 << 20
"""The largest answer that is read, in bytes: what brokers take of requests, `socket.request.max.bytes`."""
_PIECE: Final = 256 << 10
_CLIENT_ID: Final = b"leafcuttr"
_HEAD: Final = struct.Struct(">hhih")
_API_VERSIONS: Final = APIS[ApiKey.API_VERSIONS]
_BY_MODULE: Final = {api.module: api for api in (*APIS.values(), *ASKED_APIS.values())}


class NotOffered(Failure):
    """The broker does not have this API, or no version of it that we speak."""


class Connection:
    """A connection whose versions are negotiated. `versions` maps each API key to the (lowest, highest) it offers.

    Raises Failure from every method: nobody listens, no answer within `timeout` seconds, not Kafka's protocol.
    """

    def __init__(self, host: str, port: int, timeout: float) -> None:
        self.name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self.timeout = timeout
        self._correlation = 0
        self._greeted = False
        try:
            self._socket = socket.create_connection((host, port), min(timeout, CONNECT_S))
        except (OSError, UnicodeError):
            raise Failure(f"no broker answers at {self.name}") from None
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.about = self._greet()
        except BaseException:
            self._socket.close()
            raise
        self.versions = {key.api_key: (key.min_version, key.max_version) for key in self.about.api_keys}
        self._greeted = True

    def __enter__(self) -> "Connection":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def ask(self, request: Any, *, at_least: int = 0) -> Any:
        """The answer to a request, in the highest version that both sides speak.

        `at_least` is the lowest version that can carry what is asked. Raises NotOffered.
        """
        api = _BY_MODULE[type(request).__module__.rpartition(".")[2]]
        return self._exchange(api, request, self._version(api, at_least))

    def _version(self, api: Api, at_least: int) -> int:
        if api.key not in self.versions:
            raise NotOffered(f"the broker at {self.name} does not offer {api.name}")
        first, last = self.versions[api.key]
        version = min(last, api.max_version)
        if version < max(first, api.min_version, at_least):
            wanted = max(api.min_version, at_least)
            raise NotOffered(
                f"the broker at {self.name} speaks versions {first} to {last} of {api.name}; "
                f"this needs {wanted} to {api.max_version}"
            )
        return version

    def _greet(self) -> ApiVersionsResponse:
        from leafcuttr import __version__

        asked = ApiVersionsRequest(client_software_name="leafcuttr-cli", client_software_version=__version__)
        answer = self._exchange(_API_VERSIONS, asked, _API_VERSIONS.max_version)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            # KIP-511: an older broker answers in version 0, and newer ones of those say what they speak.
            offered = [key.max_version for key in answer.api_keys if key.api_key == ApiKey.API_VERSIONS]
            version = min(max(offered, default=0), _API_VERSIONS.max_version)
            answer = self._exchange(_API_VERSIONS, asked, version)
        if answer.error_code:
            raise Failure(f"{self.name} refuses ApiVersions: {reason(answer.error_code)}")
        found: ApiVersionsResponse = answer
        return found

    def _exchange(self, api: Api, request: Any, version: int) -> Any:
        self._correlation += 1
        head = _HEAD.pack(api.key, version, self._correlation, len(_CLIENT_ID)) + _CLIENT_ID
        if api.request_header_version(version) > 1:
            head += b"\0"
        try:
            body = encode(request, version)
        except WireError as error:
            raise Failure(str(error)) from None
        deadline = time.monotonic() + self.timeout
        try:
            self._socket.settimeout(self.timeout)
            self._socket.sendall((len(head) + len(body)).to_bytes(4, "big") + head + body)
            frame = self._frame(deadline)
        except TimeoutError:
            raise Failure(f"{self.name} does not answer {api.name} within {self.timeout:g} seconds") from None
        except OSError:
            raise self._closed() from None
        return self._read(api, version, frame)

    def _read(self, api: Api, version: int, frame: memoryview) -> Any:
        try:
            if int.from_bytes(frame[:4], "big", signed=True) != self._correlation:
                raise MalformedMessage("an answer to another request")
            at = 4
            if api.response_header_version(version):
                at = _skip_tags(frame, at)
            body = frame[at:]
            if (
                api is _API_VERSIONS
                and version
                and body[:2] == ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")
            ):
                version = 0
            return decode(api.response, version, body)
        except WireError as error:
            raise Failure(f"{self.name}: its answer to {api.name} cannot be read: {error}") from None

    def _frame(self, deadline: float) -> memoryview:
        head = self._exactly(4, deadline)
        size = int.from_bytes(head, "big", signed=True)
        if 4 <= size <= MAX_FRAME:
            return memoryview(self._exactly(size, deadline))
        if head[:2] == b"\x15\x03":  # a TLS alert: what Java's TLS answers to plaintext
            raise Failure(f"{self.name} speaks TLS; this command speaks plaintext only for now")
        if self._greeted:
            raise Failure(f"{self.name} announces an answer of {size} bytes; at most {MAX_FRAME} are read")
        raise Failure(f"{self.name} does not speak Kafka's protocol")

    def _exactly(self, size: int, deadline: float) -> bytearray:
        # Grows with what has come, not with what is claimed.
        data = bytearray()
        while len(data) < size:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._socket.settimeout(left)
            piece = self._socket.recv(min(size - len(data), _PIECE))
            if not piece:
                raise self._closed()
            data += piece
        return data

    def _closed(self) -> Failure:
        if self._greeted:
            return Failure(
                f"{self.name} closed the connection; if its listener wants SASL: this command speaks "
                "plaintext without authentication only, for now"
            )
        return Failure(
            f"{self.name} closed the connection at once: it wants TLS or is no Kafka; this command speaks "
            "plaintext only for now"
        )


def _skip_tags(frame: memoryview, at: int) -> int:
    count, at = read_unsigned_varint(frame, at)
    for _ in range(count):
        _, at = read_unsigned_varint(frame, at)
        size, at = read_unsigned_varint(frame, at)
        at += size
        if at > len(frame):
            raise MalformedMessage("a tagged field of the header exceeds the frame")
    return at

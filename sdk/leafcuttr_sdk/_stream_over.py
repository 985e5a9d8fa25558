"""A byte stream on another one, which says who its client is. What is sent and received is not here."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from leafcuttr_sdk.serving import ByteStream, Peer

if TYPE_CHECKING:
    import ssl


class StreamOver(ByteStream):
    """The stream below is `_stream`."""

    _stream: ByteStream

    @property
    def peer(self) -> Peer:
        return self._stream.peer

    @property
    def listener(self) -> str:
        return self._stream.listener

    @property
    def peer_certificate(self) -> Mapping[str, Any] | None:
        return self._stream.peer_certificate

    @property
    def peer_certificate_der(self) -> bytes | None:
        return self._stream.peer_certificate_der

    @property
    def tls(self) -> "ssl.SSLObject | None":
        return self._stream.tls

    @property
    def busy(self) -> bool:
        return self._stream.busy

    @busy.setter
    def busy(self, busy: bool) -> None:
        self._stream.busy = busy

"""The warning for listeners that other machines reach."""

import logging
import socket

import pytest

from leafcuttr.config.listeners import Listener
from leafcuttr.net.binding import bind
from leafcuttr.net.exposure import warn_if_open

logger = logging.getLogger("leafcuttr.test_exposure")


@pytest.mark.parametrize(
    ("host", "named"),
    [("127.0.0.1", None), ("127.0.0.3", None), ("0.0.0.0", "0.0.0.0"), ("", "this machine")],
)
def test_addresses_of_this_machine_only(
    host: str, named: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    listener, sockets = bind(Listener("P", host, 0, "h", 0), 1)
    try:
        assert warn_if_open(logger, listener, sockets, "produce", "listeners") == (named is not None)
    finally:
        for sock in sockets:
            sock.close()
    expected = (
        f"every host that reaches {named} port {listener.port} may produce without authentication (listeners)"
    )
    assert caplog.messages == ([] if named is None else [expected])


def test_one_open_address_is_enough(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as inner, socket.create_server(("0.0.0.0", 0)) as outer:
        listener = Listener("P", "both.test", 1, "h", 1)
        assert warn_if_open(logger, listener, [inner, outer], "read", "lc.metrics.host")
        assert not warn_if_open(logger, listener, [inner], "read", "lc.metrics.host")

"""The identity of clients and plugins."""

from __future__ import annotations

import pytest

from leafcuttr.state.identity import ANONYMOUS, ClientIdentity, Principal, of_plugin


@pytest.mark.parametrize(
    ("host", "printed"),
    [
        ("127.0.0.1", "/127.0.0.1"),
        ("::1", "/0:0:0:0:0:0:0:1"),
        ("2001:db8::a:0:7", "/2001:db8:0:0:0:a:0:7"),
        ("fe80::1%eth0", "/fe80:0:0:0:0:0:0:1%eth0"),
    ],
)
def test_an_address_is_printed_as_java_does(host: str, printed: str) -> None:
    assert ClientIdentity(ANONYMOUS, "PLAINTEXT", "PLAINTEXT", host, 1).client_host == printed


def test_a_plugin_is_no_user() -> None:
    plugin = of_plugin("ANONYMOUS")
    assert plugin.principal == Principal("Plugin", "ANONYMOUS") != ANONYMOUS
    assert (str(plugin.principal), str(ANONYMOUS)) == ("Plugin:ANONYMOUS", "User:ANONYMOUS")
    assert (plugin.listener_name, plugin.client_host) == ("IN_PROCESS", "/127.0.0.1")
    assert plugin.client_id == "leafcuttr-plugin-ANONYMOUS"

"""Cipher suites by Java's names."""

from __future__ import annotations

import ssl

import pytest

from leafcuttr.net.cipher_suites import NUMBERS, choose
from leafcuttr.net.tls_files import TlsError

ALL_OF_1_3 = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
BOTH = ("TLSv1.2", "TLSv1.3")
SETTING = "ssl.cipher.suites"


def chosen(suites: tuple[str, ...], versions: tuple[str, ...] = BOTH) -> list[str]:
    """Those of TLS 1.2."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    choose(context, suites, versions, SETTING)
    return [each["name"] for each in context.get_ciphers() if each["protocol"] != "TLSv1.3"]


def refusal(suites: tuple[str, ...], versions: tuple[str, ...] = BOTH) -> str:
    with pytest.raises(TlsError) as caught:
        chosen(suites, versions)
    return str(caught.value)


def test_these_and_no_others_in_their_order() -> None:
    names = ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384")
    wanted = ["ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384"]
    assert chosen(names, ("TLSv1.2",)) == wanted
    assert chosen((*ALL_OF_1_3, *names)) == wanted
    assert chosen(names[::-1], ("TLSv1.2",)) == wanted[::-1]


def test_the_names_are_those_of_the_numbers() -> None:
    """What OpenSSL says of each suite is what its name says."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL:@SECLEVEL=2")
    about = {each["id"] & 0xFFFF: each for each in context.get_ciphers()}
    known = [name for name, number in NUMBERS.items() if number in about]
    assert len(known) >= 9
    for name in known:
        exchange, _, cipher = name.removeprefix("TLS_").partition("_WITH_")
        found = about[NUMBERS[name]]
        openssl = found["name"].replace("-", "").upper()
        assert exchange.replace("_", "") in openssl or (exchange == "RSA" and "DHE" not in openssl)
        bits = {"AES_256": 256, "AES_128": 128, "CHACHA20_POLY1305": 256}
        assert found["strength_bits"] == next(bits[each] for each in bits if cipher.startswith(each))


def test_those_of_tls_1_3_cannot_be_chosen() -> None:
    line = refusal(("TLS_AES_128_GCM_SHA256",))
    assert line.startswith(
        "ssl.cipher.suites: the suites of TLS 1.3 cannot be chosen; allowed are all three ("
    )
    assert line.endswith("or ssl.enabled.protocols=TLSv1.2")
    assert chosen(ALL_OF_1_3, ("TLSv1.3",))


def test_names_that_are_none() -> None:
    assert refusal(("TLS_NULL",)).startswith(
        "ssl.cipher.suites: there is no suite TLS_NULL; there are TLS_AES"
    )
    assert refusal(ALL_OF_1_3).endswith("none of them is one of TLS 1.2 that this machine's OpenSSL has")

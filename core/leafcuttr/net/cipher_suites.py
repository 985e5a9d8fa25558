"""Cipher suites by the names that Java gives them (those of RFC 5246, 8446 and their like), chosen in a context of
Python's ssl module.

OpenSSL has other names for those of TLS 1.2; the numbers are the same (IANA's registry "TLS Cipher Suites"). Python
cannot choose the suites of TLS 1.3: a list that leaves some of them out is refused rather than ignored.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from leafcuttr.net.tls_files import TlsError

if TYPE_CHECKING:
    import ssl

_OF_1_3: Final = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
NUMBERS: Final[dict[str, int]] = {
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": 0xC02C,
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": 0xC02B,
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": 0xCCA9,
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": 0xC030,
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": 0xC02F,
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": 0xCCA8,
    "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384": 0x009F,
    "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256": 0x009E,
    "TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256": 0xCCAA,
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384": 0xC024,
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384": 0xC028,
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": 0xC023,
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": 0xC027,
    "TLS_DHE_RSA_WITH_AES_256_CBC_SHA256": 0x006B,
    "TLS_DHE_RSA_WITH_AES_128_CBC_SHA256": 0x0067,
    "TLS_RSA_WITH_AES_256_GCM_SHA384": 0x009D,
    "TLS_RSA_WITH_AES_128_GCM_SHA256": 0x009C,
}
"""Those of TLS 1.2 that Java has on by default and OpenSSL may have too."""


def choose(context: "ssl.SSLContext", suites: Sequence[str], versions: Sequence[str], setting: str) -> None:
    """Offer these, in this order, and no others. Raises TlsError with a line that names the `setting`."""
    new = [each for each in suites if each in _OF_1_3]
    old = [each for each in suites if each not in _OF_1_3]
    for each in old:
        if each not in NUMBERS:
            raise TlsError(
                f"{setting}: there is no suite {each}; there are {', '.join((*_OF_1_3, *NUMBERS))}"
            )
    if "TLSv1.3" in versions and set(new) != set(_OF_1_3):
        raise TlsError(
            f"{setting}: the suites of TLS 1.3 cannot be chosen; allowed are all three ({', '.join(_OF_1_3)}), or "
            f"{setting.removesuffix('cipher.suites')}enabled.protocols=TLSv1.2"
        )
    if "TLSv1.2" not in versions:
        return
    context.set_ciphers("ALL:@SECLEVEL=2")
    offered = {each["id"] & 0xFFFF: each["name"] for each in context.get_ciphers()}
    names = [offered[NUMBERS[each]] for each in old if NUMBERS[each] in offered]
    if not names:
        raise TlsError(f"{setting}: none of them is one of TLS 1.2 that this machine's OpenSSL has")
    context.set_ciphers(":".join(names))

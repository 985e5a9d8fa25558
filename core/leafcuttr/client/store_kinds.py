"""What kind of store a file is, by its first bytes: Java tells them apart in the same way. Nothing is read of it."""

from typing import Final

PEM: Final = "PEM"
_BEGINNINGS: Final = {b"\xfe\xed\xfe\xed": "JKS", b"\xce\xce\xce\xce": "JCEKS", b"\x30": "PKCS12"}


def kind_of_store(file: str) -> str | None:
    """JKS, JCEKS or PKCS12, else PEM. None: it cannot be read, which is said where it is. Blocks."""
    try:
        with open(file, "rb") as opened:  # noqa: PTH123
            begin = opened.read(4)
    except OSError:
        return None
    return next((kind for magic, kind in _BEGINNINGS.items() if begin.startswith(magic)), PEM)

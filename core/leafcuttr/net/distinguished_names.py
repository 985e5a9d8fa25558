"""The subject of a certificate as text: RFC 2253, as Java's `X500Principal.getName()` writes it, whose names Kafka's
principals have.

Java differs from the RFC in what it escapes (`=` and `#` everywhere), and takes the octets of every kind of string for
UTF-8. A principal has to be the same text here and there, so both are followed.
"""

from typing import Final

from leafcuttr.net.der import OBJECT_IDENTIFIER, SEQUENCE, SET, DerError, Element, first, object_identifier

_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
"""RFC 2253, 2.3. A value of any other attribute is written in hexadecimal (2.4)."""
_STRINGS: Final = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E})
"""UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString."""
_ESCAPED: Final = frozenset(',=+<>#;"\\')
_BLANK: Final = " \r"
COMMON_NAME: Final = "2.5.4.3"


def rfc2253(name: bytes) -> str:
    """The text of a Name in DER: `CN=alice,OU=web,O=Example`. Raises DerError."""
    relative = first(name)
    relative.expect(SEQUENCE)
    return ",".join("+".join(_attribute(each) for each in _set(one)) for one in reversed(relative.children()))


def common_names(name: bytes) -> list[str]:
    """The values of CN, in the order of the Name. Raises DerError."""
    found: list[str] = []
    for one in first(name).children():
        for attribute in _set(one):
            kind, value = attribute.fields(SEQUENCE, 2)[:2]
            if object_identifier(kind.expect(OBJECT_IDENTIFIER)) == COMMON_NAME:
                found.append(value.content.decode("utf-8", "replace"))
    return found


def same_name(one: bytes, other: bytes) -> bool:
    """Whether two Names are the same but for upper case and blanks, as Java compares them. Raises DerError."""
    return one == other or _folded(one) == _folded(other)


def _folded(name: bytes) -> str:
    return " ".join(rfc2253(name).lower().split())


def _set(relative: Element) -> list[Element]:
    relative.expect(SET)
    found = relative.children()
    if not found:
        raise DerError("a relative distinguished name without attributes")
    return found


def _attribute(attribute: Element) -> str:
    kind, value = attribute.fields(SEQUENCE, 2)[:2]
    identifier = object_identifier(kind.expect(OBJECT_IDENTIFIER))
    keyword = _KEYWORDS.get(identifier)
    if keyword is None or value.tag not in _STRINGS:
        return f"{keyword or identifier}=#{value.raw.hex()}"
    return f"{keyword}={_escaped(value.content.decode('utf-8', 'replace'))}"


def _escaped(text: str) -> str:
    """RFC 2253, 2.4: what has a meaning, NUL, and blanks at both ends."""
    pieces = ["\\" + each if each in _ESCAPED else "\\00" if each == "\0" else each for each in text]
    escaped = "".join(pieces)
    inner = escaped.strip(_BLANK)
    if not inner:
        return "".join("\\" + each for each in escaped)
    before = escaped[: len(escaped) - len(escaped.lstrip(_BLANK))]
    behind = escaped[len(escaped.rstrip(_BLANK)) :]
    return "".join("\\" + each for each in before) + inner + "".join("\\" + each for each in behind)

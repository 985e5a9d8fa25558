"""E-mail addresses, card and phone numbers in a text, each found in a time that grows with the text's length only.

A card number has 13 to 19 digits and Luhn's check digit (ISO/IEC 7812-1, annex B), in one piece, or with single spaces
or dashes between groups of four digits and more, of which the last may have fewer. A phone number begins with + and has
7 to 15 digits (E.164), or is written as in North America.
"""

import re
from collections.abc import Callable
from typing import Final, TypeAlias

Cover: TypeAlias = Callable[[str], str]
"""What stands in the place of a text that was found."""

_LOCAL: Final = frozenset(".!#$%&'*+/=?^_`{|}~-")
_LONGEST_LOCAL: Final = 64
"""Characters before the @ (RFC 5321, 4.5.3.1.1)."""
_DOMAIN: Final = re.compile(r"[^\W_](?:[^\W_]|-){0,62}(?:\.[^\W_](?:[^\W_]|-){0,62}){1,8}")
_PHONE: Final = re.compile(
    r"(?<![0-9+])\+[0-9](?:[ ().-]{0,2}[0-9]){6,14}(?![0-9])"
    r"|(?<![0-9+])(?:\([0-9]{3}\) ?|[0-9]{3}[ .-])[0-9]{3}[ .-][0-9]{4}(?![0-9])"
)
_GROUP_OF_THREE: Final = re.compile(r"[0-9]{3}[ .)-]")
_THIRTEEN: Final = re.compile(r"[0-9](?:[ -]?[0-9]){12}")
_DIGITS: Final = re.compile(r"[0-9]+(?:[ -][0-9]+)*")
_LEAST, _MOST = 13, 19
_LEAST_OF_GROUP: Final = 4
_DOUBLED: Final = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)


def is_card_number(digits: str) -> bool:
    """Whether so many digits are one by Luhn's check digit."""
    if not _LEAST <= len(digits) <= _MOST:
        return False
    total = sum(map(int, digits[-1::-2])) + sum(_DOUBLED[int(digit)] for digit in digits[-2::-2])
    return total % 10 == 0


def cover_emails(text: str, cover: Cover) -> str:
    out: list[str] = []
    done, at = 0, text.find("@")
    while at >= 0:
        begin, least = at, max(done, at - _LONGEST_LOCAL)
        while begin > least and (text[begin - 1].isalnum() or text[begin - 1] in _LOCAL):
            begin -= 1
        domain = _DOMAIN.match(text, at + 1) if begin < at else None
        if domain is not None:
            out += [text[done:begin], cover(text[begin : domain.end()])]
            done = domain.end()
        at = text.find("@", max(at + 1, done))
    return "".join((*out, text[done:])) if out else text


def cover_phones(text: str, cover: Cover) -> str:
    if "+" not in text and _GROUP_OF_THREE.search(text) is None:
        return text
    return _PHONE.sub(lambda found: cover(found[0]), text)


def cover_cards(text: str, cover: Cover) -> str:
    if _THIRTEEN.search(text) is None:
        return text
    return _DIGITS.sub(lambda found: _in_run(found[0], cover), text)


def _in_run(run: str, cover: Cover) -> str:
    """Card numbers in digits with single spaces and dashes among them. They begin and end where a group does."""
    if len(run) < _LEAST:
        return run
    groups = re.split("([ -])", run)  # groups of digits, and between them what stands there
    out: list[str] = []
    at = 0
    while at < len(groups):
        end = _end_of_card(groups, at)
        if end:
            out.append(cover("".join(groups[at:end])))
        else:
            end = at + 1
            out.append(groups[at])
        out += groups[end : end + 1]
        at = end + 1
    return "".join(out)


def _end_of_card(groups: list[str], at: int) -> int:
    """Where the longest card number that begins with this group ends; 0 where none does."""
    digits, end = "", 0
    for index in range(at, len(groups), 2):
        digits += groups[index]
        if len(digits) > _MOST:
            break
        if is_card_number(digits):
            end = index + 1
        if len(groups[index]) < _LEAST_OF_GROUP:
            break
    return end


PATTERNS: Final[dict[str, Callable[[str, Cover], str]]] = {
    "email": cover_emails,
    "card": cover_cards,
    "phone": cover_phones,
}
_LONG: Final = re.compile(rb"[0-9](?:[ -]?[0-9]){12}")
_SHORT: Final = re.compile(rb"[0-9]{3}[ .)-]")
MAY_BE: Final[dict[str, Callable[[bytes], bool]]] = {
    "email": lambda data: b"@" in data,
    "card": lambda data: _LONG.search(data) is not None,
    "phone": lambda data: b"+" in data or _SHORT.search(data) is not None,
}
"""By pattern whether it may be found in a text of these bytes: quicker than to look for it, in most texts."""

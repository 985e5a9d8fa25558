"""Regular expressions of schemas: ECMA-262's dialect for Python's `re`, and which of them are cheap.

Translated is what both write differently (JSON Schema Core 2020-12, 6.4; ECMA-262, 22.2 with the flag u): classes that
are ASCII only, `$` that is the very end, `(?<name>`, `\\cX`, `\\u{...}`, `\\p{...}` of general categories. What `re`
cannot do, names of scripts for one, is refused when the schema is parsed.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache, lru_cache
from typing import Final

MAX_LENGTH: Final = 10_000

# ECMA-262, 12.2 and 12.3: WhiteSpace and LineTerminator.
_SPACE: Final = "\\t\\n\\v\\f\\r \\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff"
_INSIDE: Final = {"d": "0-9", "w": "A-Za-z0-9_", "s": _SPACE}
_KEPT: Final = frozenset("bBfnrtv^$\\.*+?()[]{}|/-")
_CATEGORIES: Final = {
    "Letter": "L",
    "Lowercase_Letter": "Ll",
    "Uppercase_Letter": "Lu",
    "Titlecase_Letter": "Lt",
    "Modifier_Letter": "Lm",
    "Other_Letter": "Lo",
    "Mark": "M",
    "Combining_Mark": "M",
    "Nonspacing_Mark": "Mn",
    "Spacing_Mark": "Mc",
    "Enclosing_Mark": "Me",
    "Number": "N",
    "Decimal_Number": "Nd",
    "digit": "Nd",
    "Letter_Number": "Nl",
    "Other_Number": "No",
    "Punctuation": "P",
    "punct": "P",
    "Connector_Punctuation": "Pc",
    "Dash_Punctuation": "Pd",
    "Open_Punctuation": "Ps",
    "Close_Punctuation": "Pe",
    "Initial_Punctuation": "Pi",
    "Final_Punctuation": "Pf",
    "Other_Punctuation": "Po",
    "Symbol": "S",
    "Math_Symbol": "Sm",
    "Currency_Symbol": "Sc",
    "Modifier_Symbol": "Sk",
    "Other_Symbol": "So",
    "Separator": "Z",
    "Space_Separator": "Zs",
    "Line_Separator": "Zl",
    "Paragraph_Separator": "Zp",
    "Other": "C",
    "Control": "Cc",
    "cntrl": "Cc",
    "Format": "Cf",
    "Private_Use": "Co",
    "Unassigned": "Cn",
}


class PatternError(ValueError):
    """No regular expression of the dialect, or none that can be applied."""


@lru_cache(maxsize=4096)
def translate(pattern: str) -> str:
    """The same regular expression for `re.search`. Raises PatternError."""
    if len(pattern) > MAX_LENGTH:
        raise PatternError(f"a regular expression has {len(pattern)} characters, {MAX_LENGTH} are allowed")
    translated = "".join(_translated(pattern))
    try:
        re.compile(translated)
    except (re.error, OverflowError) as error:
        raise PatternError(f"not a regular expression: {error}") from None
    except RecursionError:
        raise PatternError("a regular expression is nested too deeply") from None
    return translated


def _translated(pattern: str) -> list[str]:
    out: list[str] = []
    n, inside = 0, False
    while n < len(pattern):
        one = pattern[n]
        if one == "\\":
            n, word = _escape(pattern, n + 1, inside)
            out.append(word)
            continue
        n += 1
        if inside:
            if one == "]":
                inside = False
            # `re` warns of these, for sets that it may have some day.
            out.append("\\" + one if one in "[&~|" or (one == "-" and pattern[n : n + 1] == "-") else one)
        elif one == "[":
            inside = True
            negated = pattern[n : n + 1] == "^"
            n += negated
            if pattern[n : n + 1] == "]":
                # An empty class matches nothing, its negation everything; `re` takes the bracket for a member.
                out.append("[\\s\\S]" if negated else "(?!)")
                n, inside = n + 1, False
            else:
                out.append("[^" if negated else "[")
        elif one == "$":
            out.append("\\Z")
        elif one == ".":
            out.append("[^\\n\\r\\u2028\\u2029]")
        elif one == "(" and pattern.startswith("?", n):
            n, word = _group(pattern, n)
            out.append(word)
        else:
            out.append(one)
    return out


def _group(pattern: str, n: int) -> tuple[int, str]:
    """What follows `(`, beginning with `?`."""
    for word in ("?:", "?=", "?!", "?<=", "?<!"):
        if pattern.startswith(word, n):
            return n + len(word), "(" + word
    named = re.compile(r"\?<([^\W\d]\w*)>").match(pattern, n)
    if named is None:
        raise PatternError("not a regular expression: (? is not followed by : = ! <= <! or <name>")
    return named.end(), f"(?P<{named[1]}>"


def _escape(pattern: str, n: int, inside: bool) -> tuple[int, str]:
    """What follows a backslash."""
    if n >= len(pattern):
        raise PatternError("not a regular expression: it ends with a backslash")
    one, rest = pattern[n], n + 1
    if one in "dws":
        return rest, _INSIDE[one] if inside else f"[{_INSIDE[one]}]"
    if one in "DWS":
        return rest, _complement(one.lower()) if inside else f"[^{_INSIDE[one.lower()]}]"
    if one in "pP":
        named = re.compile(r"\{(?:(?:General_Category|gc)=)?(\w+)\}").match(pattern, rest)
        if named is None:
            raise PatternError(
                "not a regular expression that can be applied: \\p needs a general category in braces"
            )
        members = _category(named[1], one == "P")
        return named.end(), members if inside else f"[{members}]"
    if one == "u" or one == "x":
        code = re.compile(
            r"\{([0-9A-Fa-f]{1,6})\}|([0-9A-Fa-f]{4})" if one == "u" else r"(?!)|([0-9A-Fa-f]{2})"
        )
        found = code.match(pattern, rest)
        if found is None:
            raise PatternError(f"not a regular expression: \\{one} needs digits")
        number, end = int(found[found.lastindex or 1], 16), found.end()
        low = re.compile(r"\\u([Dd][C-Fc-f][0-9A-Fa-f]{2})").match(pattern, end)
        if 0xD800 <= number < 0xDC00 and low is not None:
            number, end = 0x10000 + ((number - 0xD800) << 10) + (int(low[1], 16) - 0xDC00), low.end()
        if number > sys.maxunicode:
            raise PatternError("not a regular expression: \\u{...} is beyond the last character")
        return end, f"\\U{number:08x}"
    if one == "c":
        letter = pattern[rest : rest + 1]
        if not ("a" <= letter <= "z" or "A" <= letter <= "Z"):
            raise PatternError("not a regular expression: \\c needs a letter")
        return rest + 1, f"\\x{ord(letter) % 32:02x}"
    if one == "k":
        named = re.compile(r"<([^\W\d]\w*)>").match(pattern, rest)
        if named is None:
            raise PatternError("not a regular expression: \\k needs a name in angle brackets")
        return named.end(), f"(?P={named[1]})"
    if one == "0":
        return rest, "\\x00"
    if one.isdigit():
        return rest, "\\" + one
    if one == "b" and inside:
        return rest, "\\x08"
    if one in "bB":
        # A boundary of ECMA's words: ASCII only. `re` has no other way to say it than by looking around.
        edge = "(?<=[A-Za-z0-9_])(?![A-Za-z0-9_])|(?<![A-Za-z0-9_])(?=[A-Za-z0-9_])"
        return rest, f"(?:{edge})" if one == "b" else f"(?!{edge})"
    if one in _KEPT or not (one.isalnum() or one == "_"):
        return rest, one if one in "/" else "\\" + one
    raise PatternError(f"not a regular expression: \\{one} has no meaning")


def _category(name: str, negated: bool) -> str:
    short = _CATEGORIES.get(name, name)
    if short in ("Any", "ASCII"):
        last = 0x7F if short == "ASCII" else sys.maxunicode
        return (
            f"\\U{last + 1:08x}-\\U{sys.maxunicode:08x}"
            if negated and last < sys.maxunicode
            else f"\\x00-\\U{last:08x}"
        )
    if short not in _CATEGORIES.values() and short not in ("LC", "Cs"):
        raise PatternError(
            f"not a regular expression that can be applied: \\p{{{name[:50]}}} is no general category"
        )
    return _members(short, negated)


@cache
def _members(category: str, negated: bool) -> str:
    wanted = ("Ll", "Lu", "Lt") if category == "LC" else (category,)
    return _spelled(
        [n for n in range(sys.maxunicode + 1) if (unicodedata.category(chr(n)).startswith(wanted)) != negated]
    )


@cache
def _complement(name: str) -> str:
    members = re.compile(f"[{_INSIDE[name]}]")
    return _spelled([n for n in range(sys.maxunicode + 1) if n > 0xFFFF or members.match(chr(n)) is None])


def _spelled(codes: list[int]) -> str:
    """Ascending code points as ranges of a class."""
    out: list[str] = []
    first = last = codes[0]
    for code in [*codes[1:], -1]:
        if code == last + 1:
            last = code
            continue
        out.append(f"\\U{first:08x}" if first == last else f"\\U{first:08x}-\\U{last:08x}")
        first = last = code
    return "".join(out)

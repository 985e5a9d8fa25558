"""Variables in the texts of a file: `${name}`, `${env:NAME}`, `${file:PATH}`; `$${` is `${` itself.

What the environment and files give are secrets: their values are kept, so that they are left out of what is printed.
"""

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

MOST_CHARACTERS: Final = 64 * 1024
"""Of one text with its variables filled in."""
MOST_IN_ALL: Final = 4 * 1024 * 1024

_VARIABLE: Final = re.compile(r"\$\$\{|\$\{([^{}]*)\}")
_PLACEHOLDER: Final = "secret"
_DEEPEST: Final = 50
_MOST_COMPARED: Final = 500


class VariableError(ValueError):
    """A variable that cannot be filled in. The message is one clause, without values."""


class Variables:
    """Fills variables in. Where secrets are not needed, as for a check, one that is not there is noted, and a word
    stands for it."""

    def __init__(
        self,
        declared: Mapping[str, str | None],
        given: Mapping[str, str],
        folder: Path,
        *,
        needs_secrets: bool = True,
    ) -> None:
        self._texts: dict[str, str | None] = {**declared, **given}
        self._given = set(given)
        self._folder = folder
        self._needs_secrets = needs_secrets
        self._values: dict[str, str] = {}
        self._filling: list[str] = []
        self._made = 0
        self.secrets: set[str] = set()
        self.missing: list[str] = []
        """Secrets that are not there."""

    def fill(self, text: str) -> str:
        """Raises VariableError."""
        if "${" not in text:
            return text
        filled: list[str] = []
        size, at = len(text), 0
        for match in _VARIABLE.finditer(text):
            value = "${" if match[1] is None else self._value(match[1].strip())
            filled += (text[at : match.start()], value)
            size += len(value) - len(match[0])
            if size > MOST_CHARACTERS:
                raise VariableError(f"with its variables this has more than {MOST_CHARACTERS} characters")
            at = match.end()
        self._made += size
        if self._made > MOST_IN_ALL:
            raise VariableError(f"variables make more than {MOST_IN_ALL} characters in all")
        return "".join((*filled, text[at:]))

    def _value(self, name: str) -> str:
        if name not in self._values:
            kind, colon, rest = name.partition(":")
            if not colon:
                self._values[name] = self._declared(name)
            elif kind == "env":
                self._values[name] = self._secret(os.environ.get(rest), f"the environment has no {rest}")
            elif kind == "file":
                self._values[name] = self._secret(*self._read(rest))
            else:
                raise VariableError(
                    f"${{{name}}} is no variable; allowed: ${{NAME}}, ${{env:NAME}}, ${{file:PATH}}"
                )
        return self._values[name]

    def _declared(self, name: str) -> str:
        if name in self._filling:
            circle = " -> ".join((*self._filling[self._filling.index(name) :], name))
            raise VariableError(f"variables go in a circle: {circle}")
        if len(self._filling) == _DEEPEST:
            raise VariableError(f"variables are nested more than {_DEEPEST} deep")
        if name not in self._texts:
            raise VariableError(f"there is no variable {name}{nearest(name, self._texts)}")
        text = self._texts[name]
        if text is None:
            raise VariableError(f"the variable {name} has no value: --set {name}=...")
        if name in self._given:
            return text
        self._filling.append(name)
        try:
            return self.fill(text)
        finally:
            self._filling.pop()

    def _secret(self, value: str | None, why: str) -> str:
        if value is None:
            if self._needs_secrets:
                raise VariableError(why)
            self.missing.append(why)
            return _PLACEHOLDER
        if value:
            self.secrets.add(value)
        return value

    def _read(self, path: str) -> tuple[str | None, str]:
        file = self._folder / Path(path).expanduser()
        try:
            if not file.is_file():
                return None, f"there is no file {path}"
            with file.open("rb") as opened:
                data = opened.read(MOST_CHARACTERS + 1)
            if len(data) > MOST_CHARACTERS:
                return None, f"the file {path} is larger than {MOST_CHARACTERS} bytes"
            return data.decode("utf-8").rstrip("\r\n"), ""
        except UnicodeDecodeError:
            return None, f"the file {path} is not UTF-8"
        except (OSError, ValueError) as error:
            return None, f"the file {path} cannot be read: {getattr(error, 'strerror', None) or error}"


def nearest(name: str, allowed: Iterable[str]) -> str:
    """`: did you mean NAME?`, or an empty text."""
    names = list(allowed)[:_MOST_COMPARED]
    if (same := next((one for one in names if one.lower() == name.lower()), None)) is not None:
        return f": did you mean {same}?"
    # Of short names any two are somewhat alike.
    alike = 0.6 if len(name) > 2 else 0.75
    found = difflib.get_close_matches(name[:100], names, n=1, cutoff=alike)
    return f": did you mean {found[0]}?" if found else ""

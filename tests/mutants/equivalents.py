"""The mutants that no test can kill, listed in `equivalent.toml` with their reasons.

An entry names the module, the function, the text before and after, and, if the function has that text more than once,
which of them (`nth`). Nothing here needs cosmic-ray: a test of the gate reads the list too.
"""

import tomllib
from pathlib import Path
from typing import Final, NamedTuple

from mutants.functions import functions_in, text_of
from mutants.targets import TARGETS, source_of

LIST: Final = Path(__file__).parent / "equivalent.toml"


class Equivalent(NamedTuple):
    module: str
    function: str
    old: str
    new: str
    reason: str
    nth: int = 1

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        return self.module, self.function, self.old, self.new, self.nth

    @property
    def where(self) -> str:
        return f"{self.module} {self.function}: {self.old}"


def read_equivalents(path: Path = LIST) -> list[Equivalent]:
    return [Equivalent(**entry) for entry in tomllib.loads(path.read_text()).get("equivalent", [])]


def trouble_with(entry: Equivalent) -> str | None:
    """What is wrong with an entry as the source stands, if anything."""
    if entry.module not in TARGETS:
        return f"{entry.where}: there is no module {entry.module} in targets.py"
    if not entry.reason.strip():
        return f"{entry.where}: it has no reason"
    source = source_of(entry.module).read_text()
    lines = source.splitlines()
    for function in functions_in(source):
        if function.name == entry.function:
            text = text_of(lines[function.first - 1 : function.last])
            if text.count(entry.old) < entry.nth:
                return f"{entry.where}: the function has no such text (or fewer than {entry.nth})"
            return None
    return f"{entry.where}: there is no such function"

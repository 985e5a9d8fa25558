"""The `leafcuttr` command.

`root` finds and loads a command, each command has a folder with a module `command`, and `common` is what they share.
"""

import gc
from typing import Final

_ALLOCATIONS: Final = 10_000
"""New objects after which the first collection of a command is made."""


def main() -> None:
    """Entry point of the console script and of `python -m leafcuttr`."""
    # What a command imports and declares stays: looking through it for garbage took a tenth of the start of the broker,
    # which sets this anew once it serves.
    gc.set_threshold(_ALLOCATIONS, 20, 20)
    from leafcuttr.cli import root

    root.main()

"""The `leafcuttr` command.

`root` finds and loads a command, each command has a folder with a module `command`, and `common` is what they share.
"""


def main() -> None:
    """Entry point of the console script and of `python -m leafcuttr`."""
    from leafcuttr.cli import root

    root.main()

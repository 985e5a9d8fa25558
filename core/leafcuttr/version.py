"""The version of the package, as its wheel and `leafcuttr --version` have it."""

from typing import Final

__version__: Final = "0.7.0.dev0"

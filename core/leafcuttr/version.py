"""The version of the package, as its wheel and `leafcuttr --version` have it."""

__version__ = "0.7.0.dev0"  # the wheel's build reads this line, and knows no annotation but `str`

"""Replacements with groups of a regular expression as Java writes them: `$1`, `${name}`, and a backslash before what is
meant as it is."""

import re
from typing import Final

_GROUP: Final = re.compile(r"\\(.)|\$([0-9])|\$\{([A-Za-z][A-Za-z0-9]*)\}", re.DOTALL)


def why_no_replacement(regex: re.Pattern[str], replacement: str) -> str | None:
    """Why it names a group that the regular expression has not."""
    for reference in _GROUP.finditer(replacement):
        number, name = reference[2], reference[3]
        if (number and int(number) > regex.groups) or (name and name not in regex.groupindex):
            return f"replacement={replacement}: the regular expression has no group {reference[0]}"
    return None


def replaced(found: re.Match[str], replacement: str) -> str:
    """The replacement with the groups of what was found; a group that has found nothing is empty."""

    def group(reference: re.Match[str]) -> str:
        if reference[1] is not None:
            return reference[1]
        return found[int(reference[2]) if reference[2] else reference[3]] or ""

    return _GROUP.sub(group, replacement)

"""What can be set: one filter by each setting of the family."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from leafcuttr_sdk.settings import Setting, Type, Value

FILTER: Final = "lc.record.filter.<name>"
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,100}")


def settings() -> Iterable[Setting]:
    yield Setting(
        FILTER,
        Type.STRING,
        None,
        "A record filter of this name: its type, and its options as `option=value`. Topics name it in `lc.filters`, "
        "relays by `--filter`.",
        check_member=why_not,
    )


def why_not(name: str, value: Value) -> str | None:
    """Why a filter cannot have this name, or be defined so."""
    from leafcuttr_filters.definitions.parsing import parse_definition

    if _NAME.fullmatch(name) is None:
        return "the name of a filter has at most 100 of the letters, digits and ._-"
    try:
        definition = parse_definition(str(value))
    except ValueError as error:
        return str(error)
    salt = definition.values.get("salt.file")
    if salt is not None and not Path(salt).is_file():
        return f"salt.file={salt}: there is no such file"
    if definition.type.name != "python":
        return None
    from leafcuttr_filters.functions import why_no_target

    return why_no_target(definition.values["path"])

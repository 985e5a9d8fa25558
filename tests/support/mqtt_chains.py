"""A broker with filters and validators for the records of MQTT messages."""

from __future__ import annotations

from typing import Any, Final

from leafcuttr.state.broker import Broker as Core
from leafcuttr.state.chains import Instance, Tables
from leafcuttr_sdk import NotReady, Plugin, Record

PLUGIN: Final = Plugin("mqtt", 1, "one for tests")
ready = {"now": False}


def no_bad(record: Record) -> str | None:
    return f"{(record.value or b'').decode()} is bad" if (record.value or b"").startswith(b"bad") else None


def wait(record: Record) -> Any:
    return None if ready["now"] else NotReady("a table")


def fails(record: Record) -> Any:
    if (record.value or b"").startswith(b"poison"):
        raise LookupError("no table")
    return record


def open_with(opened: Any, **settings: str) -> Core:
    core: Core = opened({name.replace("_", "."): value for name, value in settings.items()})
    core.chains.equip(
        Tables(
            {"fails": lambda *_: Instance("tests", fails)},
            {"no-bad": lambda *_: Instance("tests", no_bad), "wait": lambda *_: Instance("tests", wait)},
        )
    )
    return core

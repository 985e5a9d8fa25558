"""Programs beside the broker, under its supervision: `leafcuttr_sdk.Broker.child`.

    async with broker.child("pipeline", [sys.executable, "-m", "pipeline"], memory_bytes=2 << 30) as child:
        task_status.started()
        await child.ended()

For what is a program of its own: another language, a JVM, what may not share the broker's process. A function that is
to run in another process is for `Broker.run_in_worker`.
"""

from enum import Enum
from typing import Protocol

from leafcuttr_sdk.errors import PluginError


class Restart(Enum):
    """When a child that has ended is started again."""

    ALWAYS = "always"
    ON_FAILURE = "on failure"
    """Not if it has ended with status 0: then it is done."""
    NEVER = "never"


class ChildError(PluginError):
    """The program of a child cannot be started: it or its folder does not exist, or may not be used. The message is one
    line."""


class Child(Protocol):
    """A program for as long as the context of `Broker.child` lasts."""

    @property
    def name(self) -> str:
        """As it was given."""
        ...

    @property
    def pid(self) -> int | None:
        """Of the program itself, which leads a process group and session of this number; None while it does not run."""
        ...

    @property
    def up(self) -> bool:
        """It runs."""
        ...

    @property
    def trouble(self) -> str:
        """Why it does not, in one line: how it has ended, and the last line that it has printed. Empty while it runs,
        and once it has ended with status 0 and is not started again."""
        ...

    @property
    def restarts(self) -> int:
        """How often it has been started again."""
        ...

    @property
    def memory_bytes(self) -> int:
        """What it and all that it has started had at the last look, some seconds ago at most; 0 while it does not
        run."""
        ...

    async def ended(self) -> int:
        """Wait until it has ended and is not started again, and return its exit status: a negative one is the signal
        that has ended it. Not for one that is always started again."""
        ...

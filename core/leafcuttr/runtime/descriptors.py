"""The guard of descriptors: what opens a file goes on where the process may have no more of them.

Descriptors that are kept for speed alone can be opened again. Their holders register a function that closes one of
theirs, and what needs one, an import as well as a segment, is tried again with one less kept. So a request is served at
the limit too, also one whose handler has to be imported first.
"""

import errno
from collections.abc import Callable
from typing import Final, TypeVar

from leafcuttr.errors import StorageError
from leafcuttr_sdk.trouble import import_late

T = TypeVar("T")

NO_DESCRIPTORS: Final = (errno.EMFILE, errno.ENFILE)
"""What the kernel says when the process, or the machine, may have no more open files."""


class DescriptorGuard:
    """See the module's docstring. Callable in any thread, as far as the holders are."""

    __slots__ = ("_holders",)

    def __init__(self) -> None:
        self._holders: list[Callable[[], bool]] = []

    def add(self, release_one: Callable[[], bool]) -> None:
        """`release_one` closes a descriptor that its owner can open again; False if there is none."""
        self._holders.append(release_one)

    def opening(self, opens: Callable[[], T]) -> T:
        """Do what opens a file; as long as the process may have no more, again with one less kept. Raises OSError."""
        while True:
            try:
                return opens()
            except OSError as error:
                if error.errno not in NO_DESCRIPTORS or not any(release() for release in self._holders):
                    raise

    def import_late(self, *names: str) -> None:
        """Import these modules. Raises StorageError, after which it can be tried again."""
        try:
            self.opening(lambda: import_late(*names))
        except OSError as error:
            raise StorageError(error.strerror or str(error)) from None

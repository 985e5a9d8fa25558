"""Which segments of a log have aborted transactions.

Few have any, and which these are is found out once: by a look into the folder, in a worker thread where there are many
segments, and told by the appends from then on.
"""

from typing import TYPE_CHECKING, Final

from leafcuttr.log.files.open_file import NotCached

if TYPE_CHECKING:
    from collections.abc import Callable

    from leafcuttr.log.segment.segment import Segment

_FEW: Final = 16  # segments whose files are looked for on the loop


class _FolderNotReadError(NotCached):
    """The folder has to be looked into first; `warm` does it."""

    def __init__(self, warm: "Callable[[], None]") -> None:
        Exception.__init__(self, "the transaction indexes of a folder are not known yet")
        self.warm = warm


class Aborts:
    """The segments of a log in which transactions were aborted."""

    __slots__ = ("_looked", "_segments")

    def __init__(self, *, empty: bool = False) -> None:
        self._segments: list[Segment] | None = [] if empty else None
        self._looked: dict[Segment, bool] = {}  # whether each had a file when the folder was looked into

    def noticed(self, segment: "Segment") -> None:
        """The segment has an entry more."""
        if self._segments is not None and (not self._segments or self._segments[-1] is not segment):
            self._segments.append(segment)

    def forget(self) -> None:
        """The segments are others than they were: look again."""
        self._segments = None

    def among(self, segments: "list[Segment]", *, may_block: bool) -> "list[Segment]":
        """Those of the log's `segments`, in the order of their offsets; some of them may have gone. Raises NotCached,
        OSError."""
        if self._segments is None:
            unknown = [segment for segment in segments if segment not in self._looked]
            if len(unknown) > _FEW:
                if not may_block:
                    raise _FolderNotReadError(lambda: self._look(unknown))
                self._look(unknown)
            self._segments = [s for s in segments if s.has_aborted(self._looked.get(s))]
            self._looked = {}
        return self._segments

    def _look(self, segments: "list[Segment]") -> None:
        self._looked = {segment: segment.has_aborted() for segment in segments}

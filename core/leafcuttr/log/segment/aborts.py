"""Which segments of a log have aborted transactions.

Few have any. Which these are is read once from the folder, in a worker thread where there are many segments; from then
on each append of an aborting marker adds its segment.
"""

from typing import TYPE_CHECKING, Final

from leafcuttr.log.files.open_file import NotCached

if TYPE_CHECKING:
    from collections.abc import Callable

    from leafcuttr.log.segment.segment import Segment

_FEW: Final = 16  # segments whose files are searched for on the loop


class _FolderNotReadError(NotCached):
    """The folder has to be read first; `warm` does it."""

    def __init__(self, warm: "Callable[[], None]") -> None:
        Exception.__init__(self, "the transaction indexes of a folder are not known yet")
        self.warm = warm


class Aborts:
    """The segments of a log in which transactions were aborted."""

    __slots__ = ("_on_disk", "_segments")

    def __init__(self, *, empty: bool = False) -> None:
        self._segments: list[Segment] | None = [] if empty else None
        self._on_disk: dict[Segment, bool] = {}  # whether each had a file when the folder was read

    def noticed(self, segment: "Segment") -> None:
        """The segment has an entry more."""
        if self._segments is not None and (not self._segments or self._segments[-1] is not segment):
            self._segments.append(segment)

    def forget(self) -> None:
        """The log has got other segments: read the folder again."""
        self._segments = None

    def among(self, segments: "list[Segment]", *, may_block: bool) -> "list[Segment]":
        """Those of the log's `segments`, in the order of their offsets; some of them may have gone. Raises NotCached,
        OSError."""
        if self._segments is None:
            unknown = [segment for segment in segments if segment not in self._on_disk]
            if len(unknown) > _FEW:
                if not may_block:
                    raise _FolderNotReadError(lambda: self._read_folder(unknown))
                self._read_folder(unknown)
            self._segments = [s for s in segments if s.has_aborted(self._on_disk.get(s))]
            self._on_disk = {}
        return self._segments

    def _read_folder(self, segments: "list[Segment]") -> None:
        self._on_disk = {segment: segment.has_aborted() for segment in segments}

"""What a log is given to work with: one object for all logs of a data directory."""

from leafcuttr.log.files.pool import FilePool
from leafcuttr.log.files.write_pressure import WritePressure
from leafcuttr.runtime.runtime import Runtime


class LogResources:
    """`refusal` says why clients may write nothing more (see `files.free_space`); `pressure` is consulted before a
    write on the loop."""

    __slots__ = ("clock", "complaints", "descriptors", "pool", "pressure", "refusal", "writers")

    def __init__(self, runtime: Runtime, pool: FilePool, pressure: WritePressure) -> None:
        self.clock = runtime.clock
        self.complaints = runtime.complaints
        self.descriptors = runtime.descriptors
        self.writers = runtime.writers
        self.pool = pool
        self.pressure = pressure
        self.refusal: str | None = None

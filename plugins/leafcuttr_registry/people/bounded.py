"""A codec for a schema that some values would keep busy without a bound, in a command: it works in a child process,
which is ended when a value takes too long."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from leafcuttr_sdk.schemas import DataError, JsonValue, ParsedSchema, SchemaCodec

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

DEADLINE_S: Final = 5.0
"""What one value may take. A person waits for it."""
_START_S: Final = 60.0
"""What the child may take to start, and to import the format."""

_Call = Literal["decode", "encode", "check"]


def codec_of(schema: ParsedSchema, message: Sequence[int]) -> SchemaCodec:
    """Raises DataError for a path that leads to no message."""
    return BoundedCodec(schema, message) if schema.needs_worker else schema.codec(message)


class BoundedCodec:
    """A `SchemaCodec`. Its child ends with it, or with this process."""

    def __init__(self, schema: ParsedSchema, message: Sequence[int], deadline_s: float | None = None) -> None:
        self._schema = schema
        self._message = tuple(message)
        self._deadline_s = DEADLINE_S if deadline_s is None else deadline_s
        self._child: tuple[SpawnProcess, Connection] | None = None

    def decode(self, data: bytes) -> JsonValue:
        """Raises DataError."""
        found: JsonValue = self._ask("decode", data)
        return found

    def encode(self, value: JsonValue) -> bytes:
        """Raises DataError."""
        found: bytes = self._ask("encode", value)
        return found

    def check(self, data: bytes) -> None:
        """Raises DataError."""
        self._ask("check", data)

    def close(self) -> None:
        """End the child. The next value has another one."""
        if self._child is not None:
            process, connection = self._child
            self._child = None
            process.kill()
            process.join()
            connection.close()

    def _ask(self, call: _Call, given: object) -> Any:
        _, connection = self._child or self._start()
        try:
            connection.send((call, given))
            if not connection.poll(self._deadline_s):
                self.close()
                raise DataError(f"a check by its schema takes longer than {self._deadline_s:g} s")
            found, error = connection.recv()
        except (EOFError, OSError):
            self.close()
            raise DataError("the process that checks by its schema has ended") from None
        if error is not None:
            raise DataError(error)
        return found

    def _start(self) -> "tuple[SpawnProcess, Connection]":
        import multiprocessing

        context = multiprocessing.get_context("spawn")
        connection, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self._schema, self._message), daemon=True)
        process.start()
        theirs.close()
        self._child = process, connection
        try:
            ready = connection.poll(_START_S) and connection.recv()
        except EOFError:
            ready = False
        if not ready:
            self.close()
            raise DataError("the process that checks by its schema does not start")
        return self._child


def _serve(connection: "Connection", schema: ParsedSchema, message: tuple[int, ...]) -> None:
    """What the child does."""
    codec = schema.codec(message)
    connection.send(True)
    while True:
        try:
            call, given = connection.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            connection.send((getattr(codec, call)(given), None))
        except DataError as error:
            connection.send((None, str(error)))

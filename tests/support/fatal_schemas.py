"""A schema by which some values end the process that checks them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from typing import NoReturn

from leafcuttr_sdk.schemas import DataError, JsonValue


class Fatal:
    """A `ParsedSchema`. `end` ends the process, `hang` hangs whatever signals come, `large` needs more memory than a
    check may have; `bad` is not of the schema."""

    canonical = "fatal"
    record_name = None
    needs_worker = True

    def message_name(self, message: Sequence[int] = (0,)) -> None:
        return None

    def normalized(self) -> str:
        return self.canonical

    def formatted(self, how: str) -> str:
        return self.canonical

    def codec(self, message: Sequence[int] = (0,)) -> Fatal:
        return self

    def check(self, data: bytes) -> None:
        if data == b"bad":
            raise DataError("it is bad")
        if data == b"end":
            os._exit(1)
        if data == b"hang":
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPROF})
            time.sleep(600)
        if data == b"large":
            bytearray(1 << 40)

    def decode(self, data: bytes) -> JsonValue:
        self.check(data)
        return data.decode()

    def encode(self, value: JsonValue) -> NoReturn:
        raise DataError("it encodes nothing")

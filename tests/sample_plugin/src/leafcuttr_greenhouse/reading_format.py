"""The format `reading`: `7 21.5` for people, six bytes in the record; in Fahrenheit by its option. It makes records."""

from collections.abc import Iterator, Mapping
from random import Random

from leafcuttr_greenhouse.reading import Reading, decode, parse
from leafcuttr_sdk import FormatCodec, FormatError, Place, Record


class ReadingFormat:
    name = "reading"
    summary = "a sensor and its temperature, as in `7 21.5`"
    options: Mapping[str, str] = {"unit": "C or F"}

    def open(self, options: Mapping[str, str]) -> FormatCodec:
        unit = options.get("unit", "C")
        if unit not in ("C", "F"):
            raise FormatError(f"unit={unit}: it is C or F")
        return _Codec(fahrenheit=unit == "F")

    def make_records(self, topic: str, options: Mapping[str, str], random: Random) -> Iterator[Record]:
        while True:
            reading = Reading(random.randrange(8), round(random.gauss(20, 5), 1))
            yield Record(reading.encode(), b"%d" % reading.sensor)


class _Codec:
    json_text = False

    def __init__(self, *, fahrenheit: bool) -> None:
        self._fahrenheit = fahrenheit

    def encode(self, text: str, place: Place) -> bytes:
        try:
            reading = parse(text)
        except ValueError as error:
            raise FormatError(str(error)) from None
        if self._fahrenheit:
            reading = Reading(reading.sensor, (reading.celsius - 32) / 1.8)
        return reading.encode()

    def decode(self, data: bytes, place: Place) -> str:
        try:
            reading = decode(data)
        except ValueError as error:
            raise FormatError(str(error)) from None
        if self._fahrenheit:
            reading = Reading(reading.sensor, reading.celsius * 1.8 + 32)
        return str(reading)

    def close(self) -> None:
        pass

#!/usr/bin/env python3
"""What a record costs in the codec of the plugin for Spark, alone, on one core.

  spark_codec.py [--rounds N] [--records N] [--size BYTES]

`decode` is batches of 1000 records to Arrow, by the size of their values and the compression; `encode` is Arrow to
batches; `murmur2` is the partitions of keys; `avro` is values of five fields to columns. Each line has the median and
the best of the rounds, of which the first is dropped, in millions of records a second of the processor's time. The
SDK's reader and builder of batches and fastavro, which make objects, stand beside for a part of the same records.
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa

from leafcuttr.wire.compression import Codec
from leafcuttr.wire.records import Record, encode_batch
from leafcuttr_sdk.batches import BatchBuilder, batches_in, encode_key
from leafcuttr_spark.codec.avro import avro_columns
from leafcuttr_spark.codec.decoding import Wanted, decode
from leafcuttr_spark.codec.encoding import Rows, encode
from leafcuttr_spark.codec.murmur2 import partitions_of

IN_A_BATCH = 1000
ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "amount", "type": ["null", "double"]},
        {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": ["a", "b", "c"]}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}


def batches(count: int, size: int, codec: Codec, headers: tuple[tuple[str, bytes | None], ...] = ()) -> bytes:
    """As a broker stores them. Values differ in size a little."""
    made = {}
    out = bytearray()
    for base in range(0, count, IN_A_BATCH):
        if (base // IN_A_BATCH) % 10 not in made:
            records = [
                Record(
                    n, 1_700_000_000_000 + n, b"key-%06d" % (n * 7919 % 50000), bytes(size - n % 7), headers
                )
                for n in range(IN_A_BATCH)
            ]
            made[(base // IN_A_BATCH) % 10] = encode_batch(records, codec=codec)
        one = bytearray(made[(base // IN_A_BATCH) % 10])
        one[:8] = base.to_bytes(8, "big")
        out += one
    return bytes(out)


def rate(work: Callable[[], int], rounds: int) -> tuple[float, float]:
    """Median and best, in millions of records a second."""
    found = []
    for _ in range(rounds + 1):
        began = time.process_time()
        records = work()
        found.append(records / (time.process_time() - began) / 1e6)
    return statistics.median(found[1:]), max(found[1:])


def decoding(data: bytes, wanted: Wanted) -> Callable[[], int]:
    def work() -> int:
        # In pieces as they are fetched.
        total = at = 0
        ends = []
        for batch in batches_in(data):
            at += batch.header.size
            if not ends or at - (ends[-1] if ends else 0) >= 4 << 20:
                ends.append(at)
        if not ends or ends[-1] != len(data):
            ends.append(len(data))
        begin = 0
        for end in ends:
            total += sum(len(columns.offsets) for columns in decode(data[begin:end], wanted))
            begin = end
        return total

    return work


def reading(data: bytes) -> Callable[[], int]:
    def work() -> int:
        return sum(
            1
            for batch in batches_in(data)
            for record in batch.records()
            if (bytes(record.key or b""), bytes(record.value or b""))
        )

    return work


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--size", type=int, default=200)
    chosen = parser.parse_args()
    count, size, rounds = chosen.records, chosen.size, chosen.rounds

    def show(name: str, work: Callable[[], int], of: int = rounds) -> None:
        median, best = rate(work, of)
        print(f"{name:46} {median:6.2f} {best:6.2f} M/s", flush=True)

    print(f"{count} records, values of {size} bytes{'':14} median   best")
    plain = batches(count, size, Codec.NONE)
    show("decode", decoding(plain, Wanted()))
    show("decode, offsets alone", decoding(plain, Wanted(keys=False, values=False)))
    heads = batches(count // 4, size, Codec.NONE, (("trace", b"0123456789abcdef"), ("from", b"bench")))
    show("decode, two headers", decoding(heads, Wanted(headers=True)))
    for codec in (Codec.LZ4, Codec.ZSTD):
        show(f"decode, {codec.name.lower()}", decoding(batches(count, size, codec), Wanted()))
    show("  the SDK's reader", reading(batches(count // 10, size, Codec.NONE)), 2)

    keys = pa.array([b"key-%06d" % (n * 7919 % 50000) for n in range(count)], pa.binary())
    values = pa.array([bytes(size - n % 7) for n in range(count)], pa.binary())
    rows = Rows(keys, values, np.arange(count, dtype=np.int64) // 10 + 1_700_000_000_000)
    # In pieces as Spark hands them over.
    pieces = [rows.part(at, min(at + 10_000, count)) for at in range(0, count, 10_000)]
    show("encode", lambda: sum(batch.records for piece in pieces for batch in encode(piece)))
    small = pa.array([b"%020d" % n for n in range(count)], pa.binary())
    tiny = [
        Rows(keys, small, rows.timestamps).part(at, min(at + 10_000, count)) for at in range(0, count, 10_000)
    ]
    show(
        "encode, values of 20 bytes", lambda: sum(batch.records for piece in tiny for batch in encode(piece))
    )
    show("  the SDK's builder", lambda: building(count // 10, size), 2)
    show("murmur2", lambda: len(partitions_of(keys, 12)))

    orders = avro_columns(ORDER)
    assert orders is not None
    parsed = fastavro.parse_schema(ORDER)
    encoded = pa.array([order(parsed, number) for number in range(count // 5)], pa.binary())
    parts = [encoded.slice(at, 10_000) for at in range(0, len(encoded), 10_000)]
    show("avro", lambda: sum(len(orders.decode(part, 5)) for part in parts))
    bare = [value[5:] for value in encoded[: count // 50].to_pylist()]
    show(
        "  fastavro", lambda: sum(1 for one in bare if fastavro.schemaless_reader(io.BytesIO(one), parsed)), 2
    )


def order(schema: Any, number: int) -> bytes:
    """With the five bytes of Confluent's framing in front."""
    out = io.BytesIO()
    out.write(b"\0\0\0\0\7")
    value = {
        "id": number,
        "customer": f"customer-{number % 1000}",
        "amount": None if number % 10 == 0 else number / 7,
        "status": "abc"[number % 3],
        "at": 1_700_000_000_000 + number,
    }
    fastavro.schemaless_writer(out, schema, value)
    return out.getvalue()


def order_values(count: int) -> tuple[bytes, pa.Array]:
    """The schema, and values without what is in front of them."""
    parsed = fastavro.parse_schema(ORDER)
    values = pa.array([order(parsed, number)[5:] for number in range(count)], pa.binary())
    return json.dumps(ORDER).encode(), values


def building(count: int, size: int) -> int:
    value = bytes(size)
    for base in range(0, count, IN_A_BATCH):
        builder = BatchBuilder()
        builder.extend_encoded(
            (value, encode_key(b"key-%06d" % n), b"\0", 1_700_000_000_000 + n)  # type: ignore[misc]
            for n in range(base, base + IN_A_BATCH)
        )
        builder.finish()
    return count


if __name__ == "__main__":
    main()

"""What is read by shapes is what is read number by number, on sound bytes and on damaged ones; and what is learnt."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr.wire.batch import HEADER_SIZE
from leafcuttr.wire.errors import MalformedMessage
from leafcuttr.wire.primitives import write_varlong
from leafcuttr.wire.record_shapes import (
    FORGET_AFTER,
    FREE,
    LONGEST_HEADERS,
    LONGEST_TAIL,
    MISFITS,
    MOST_HEADERS,
    MOST_NAMES,
    MOST_SIZES,
    PRICE,
    TAILS_OF_A_SIZE,
    TRIES,
    Shapes,
    no_tail,
)
from leafcuttr.wire.records import Record, decode_records, encode_batch
from leafcuttr_sdk.records import Headers

NOT_TEXT = b"\xff\xfe".decode("utf-8", "surrogateescape")
SIZES = [0, 1, 2, 63, 64, 65, 127, 128, 300]
names = st.sampled_from(["a", "b", "ab", "", "é", NOT_TEXT, "n" * 63, "n" * 64, "n" * 130])
parts = st.none() | st.builds(
    lambda size, byte: byte * size, st.sampled_from(SIZES), st.sampled_from([b"\0", b"x"])
)
kinds = st.lists(st.tuples(names, st.sampled_from(SIZES)), max_size=5)


def encoded(*numbers: int | bytes) -> bytes:
    out = bytearray()
    for number in numbers:
        if isinstance(number, bytes):
            out += number
        else:
            write_varlong(out, number)
    return bytes(out)


def block_of(headers: Headers) -> bytes:
    """The bytes of headers."""
    whole = encode_batch([Record(0, 0, None, None, headers)])
    return bytes(whole[HEADER_SIZE + len(encoded(len(whole) - HEADER_SIZE - 1)) + 5 :])


def tail_of(key: bytes | None, value: bytes | None, headers: Headers) -> bytes:
    front = [part for each in (key, value) for part in ((-1,) if each is None else (len(each), each))]
    return encoded(*front) + block_of(headers)


def paid(shapes: Shapes) -> None:
    """Pay for all that a test learns."""
    for _ in range(PRICE * 4 * MOST_SIZES):
        shapes.learn_tail(b"\1\1\0", 0, 3, (None, None, ()))


def no_more_tails(shapes: Shapes) -> None:
    paid(shapes)
    for size in range(1000, 1000 + MOST_SIZES):
        headers: Headers = (("h", bytes(size)),)
        tail = tail_of(None, b"v", headers)
        shapes.learn_tail(tail, 0, len(tail), (None, b"v", headers))


def no_more_sizes(shapes: Shapes, headers: Headers) -> None:
    """These are known by their names alone."""
    paid(shapes)
    for size in range(MOST_SIZES):
        name, *others = (name for name, _ in headers) if not size else ("g",)
        some: Headers = ((name, bytes(300 + size)), *((other, b"") for other in others))
        block = block_of(some)
        shapes.learn_headers(block, 0, len(block), some)


def read_all(batch: bytes, shapes: Shapes | None) -> tuple[list[Record], str]:
    """The records, and what was said of the first that is broken."""
    found: list[Record] = []
    try:
        for record in decode_records(batch, shapes=shapes):
            found.append(record)
    except MalformedMessage as error:
        return found, f"{type(error).__name__}: {error}"
    return found, ""


@st.composite
def alike(draw: st.DrawFn) -> list[Record]:
    """Records of few kinds: of one kind, names and mostly sizes are the same."""
    some = draw(st.lists(st.tuples(parts, parts, kinds), min_size=1, max_size=3))
    records = []
    for number in range(draw(st.integers(1, 40))):
        key, value, kind = draw(st.sampled_from(some))
        headers: list[tuple[str, bytes | None]] = []
        for name, size in kind:
            odd = draw(st.integers(0, 9))
            content = None if odd == 8 else bytes([number]) * (size + odd // 9)
            headers.append((name, b"same" if odd < 4 and size == 2 else content))
        records.append(Record(number, 7, key, value, tuple(headers)))
    return records


@given(st.lists(alike(), min_size=1, max_size=4), st.integers(0, 3), st.data())
@settings(max_examples=300, deadline=None)
def test_with_shapes_the_same_is_read(drawn: list[list[Record]], damages: int, data: st.DataObject) -> None:
    shapes = Shapes()
    for records in drawn:
        batch = encode_batch(records)
        assert read_all(bytes(batch), shapes) == (records, "")
        for _ in range(damages):
            at = data.draw(st.integers(HEADER_SIZE, len(batch) - 1))
            batch[at] = data.draw(st.sampled_from([0, 1, 3, 0x7F, 0x80, 0x81, 0xFF]) | st.integers(0, 255))
        assert read_all(bytes(batch), shapes) == read_all(bytes(batch), None)


TELLING: Headers = (("source", b"north"), ("unit", b"C"), (NOT_TEXT, b"\xff"), ("trace", b"0123456789abcdef"))


def made(headers: Headers, key: bytes | None = b"key", value: bytes | None = b"value") -> bytes:
    return bytes(encode_batch([Record(0, 7, key, value, headers)] * 3))


@pytest.mark.parametrize("key", [b"key", b"", None])
def test_every_byte_that_differs_is_noticed(key: bytes | None) -> None:
    """Also of what is known by all three ways."""
    sound = made(TELLING, key)
    tails, by_size, by_names = Shapes(), Shapes(), Shapes()
    for shapes in (by_size, by_names):
        no_more_tails(shapes)
    no_more_sizes(by_names, TELLING)
    for at in range(HEADER_SIZE, len(sound)):
        for byte in (0, 1, 5, 0x80, 0xFF, sound[at] ^ 2):
            changed = sound[:at] + bytes([byte]) + sound[at + 1 :]
            due = read_all(changed, None)
            for shapes in (tails, by_size, by_names):
                assert read_all(sound, shapes) == read_all(sound, None)
                assert read_all(changed, shapes) == due


@pytest.fixture
def shapes() -> Shapes:
    return Shapes()


@pytest.mark.parametrize("key", [b"key", b"", None])
def test_a_tail_is_known_by_its_size(shapes: Shapes, key: bytes | None) -> None:
    tail = tail_of(key, b"value", TELLING)
    shapes.learn_tail(tail, 0, len(tail), (key, b"value", TELLING))
    read = shapes.tail(len(tail), no_tail)
    assert read(b"__" + tail + b"__", 2) == (key, b"value", TELLING)
    other: Headers = (("source", b"south"), *TELLING[1:])
    assert read(tail_of(key, b"VALUE", other), 0) == (key, b"VALUE", other)
    assert shapes.tail(len(tail) + 1, no_tail)(tail, 0) is None
    for same_size in (
        tail_of(key, b"valu", (("source", b"north!"), *TELLING[1:])),
        tail_of(key, b"value", (("sourcE", b"north"), *TELLING[1:])),
        tail_of(key, b"value", (("source", b"nort"), ("unit", b"CC"), *TELLING[2:])),
        tail_of(key, b"value!", (("source", b"nort"), *TELLING[1:])),
    ):
        assert len(same_size) == len(tail)
        assert read(same_size, 0) is None


def test_equal_headers_are_one_object_until_many_differ(shapes: Shapes) -> None:
    def headers_of(*headers: Headers) -> list[Headers]:
        batch = encode_batch([Record(n, 7, b"%d" % (n % 10), b"v", each) for n, each in enumerate(headers)])
        return [record.headers for record in decode_records(batch, shapes=shapes)]

    first, second, third = headers_of(TELLING, TELLING, TELLING)
    assert first == second == third == TELLING
    assert second is third
    differ: list[Headers] = [(*TELLING[:-1], ("trace", b"%016d" % number)) for number in range(TRIES)]
    assert headers_of(*differ) == differ
    first, second = headers_of(TELLING, TELLING)
    assert first == second == TELLING
    assert first is not second
    assert headers_of(*[TELLING] * 3) == [TELLING] * 3


def test_headers_are_known_by_their_size_where_the_tail_is_not(shapes: Shapes) -> None:
    block = block_of(TELLING)
    assert shapes.headers(len(block), shapes.by_names)(block, 0, len(block)) is None
    shapes.learn_headers(block, 0, len(block), TELLING)
    known = shapes.headers(len(block))
    assert known is not None
    assert known(b"_" + block + b"_", 1, 1 + len(block)) == TELLING
    other: Headers = (("source", b"east"), ("unit", b"CC"), *TELLING[2:])
    block = block_of(other)
    for number in range(MISFITS + 1):
        assert (shapes.headers(len(block)) is known) == (number < MISFITS)
        reader = shapes.headers(len(block))
        assert reader is not None and reader(block, 0, len(block)) == other  # by the names


def test_names_are_known_once_there_is_no_room_for_sizes(shapes: Shapes) -> None:
    def block(size: int, name: str = "h") -> tuple[bytes, Headers]:
        headers: Headers = ((name, b"x" * size), ("second", b"y" * (size % 3)))
        return block_of(headers), headers

    paid(shapes)
    for number in range(MOST_SIZES):
        data, headers = block(number * 4)
        shapes.learn_headers(data, 0, len(data), headers)
    for size in (1, 62, 63, 64, 65, 127, 128, 200, 250):
        data, headers = block(size)
        if shapes.headers(len(data)) is None:
            assert shapes.by_names(b"_" + data + b"_", 1, len(data) + 1) == headers
    assert shapes.headers(len(block(250)[0])) is None, "one at least is read by names"
    for name in ("i", "j", "k"):
        data, headers = block(250, name)
        assert shapes.by_names(data, 0, len(data)) is None
        shapes.learn_headers(data, 0, len(data), headers)
        assert shapes.by_names(data, 0, len(data)) == headers
    for name in ("h", "i", "j", "k"):
        data, headers = block(250, name)
        assert shapes.by_names(data, 0, len(data)) == headers
    data, headers = block(250, "l")
    shapes.learn_headers(data, 0, len(data), headers)
    data, headers = block(250)
    assert MOST_NAMES == 4
    assert shapes.by_names(data, 0, len(data)) is None, "the oldest gives way"


@pytest.mark.parametrize(
    "block",
    [
        encoded(1, 1, b"h", 2000, bytes(9)),  # beyond all bytes that there are
        encoded(1, 1, b"h", 3, bytes(2)),
        encoded(1, 1, b"h", 1, bytes(2)),
        encoded(1, 1, b"h", -1),
        encoded(1, 1, b"h"),
        encoded(1, 1, b"h", b"\x80"),
        encoded(1, 1, b"h", b"\x82\x80\x80\x00", bytes(1)),
        encoded(2, 1, b"h", 1, bytes(1)),
        encoded(1, 1, b"f", 1, bytes(1)),
    ],
)
def test_names_do_not_read_what_they_cannot(shapes: Shapes, block: bytes) -> None:
    no_more_sizes(shapes, (("h", b""),))
    assert shapes.by_names(encoded(1, 1, b"h", 5, bytes(5)), 0, 9) == (("h", bytes(5)),)
    assert shapes.by_names(block, 0, len(block)) is None


def test_a_size_of_three_bytes_is_not_read_by_names(shapes: Shapes) -> None:
    no_more_sizes(shapes, (("h", b""),))
    for size in (LONGEST_HEADERS - 5, LONGEST_HEADERS - 4, 8191, 8192, 10_000, 20_000):
        block = encoded(1, 1, b"h", size, bytes(size))
        due = (("h", bytes(size)),) if len(block) <= LONGEST_HEADERS else None
        assert shapes.by_names(block, 0, len(block)) == due
    # Read as if it had two bytes, this size would be 8191 + 128, and the header would end where the others do.
    block = encoded(1, 1, b"h") + b"\xfe\x80\x01" + bytes(8191 + 127)
    assert shapes.by_names(block, 0, len(block)) is None


@pytest.mark.parametrize(
    ("key", "value", "headers"),
    [
        (b"k", None, (("h", b"v"),)),
        (b"k", b"v", (("h", None),)),
        (b"k", b"v", tuple(("h", b"v") for _ in range(MOST_HEADERS + 1))),
        (b"k", b"v", (("h", bytes(LONGEST_HEADERS)),)),
        (b"k", bytes(LONGEST_TAIL), (("h", b"v"),)),
    ],
)
def test_what_is_not_learnt(shapes: Shapes, key: bytes, value: bytes | None, headers: Headers) -> None:
    tail = tail_of(key, value, headers)
    shapes.learn_tail(tail, 0, len(tail), (key, value, headers))
    assert shapes.tail(len(tail)) is None
    for _ in range(3):
        batch = encode_batch([Record(n, 7, key, value, headers) for n in range(20)])
        assert [tuple(each)[2:] for each in decode_records(batch, shapes=shapes)] == [
            (key, value, headers)
        ] * 20


def test_as_much_as_may_be_is_learnt(shapes: Shapes) -> None:
    many: Headers = tuple(("h", b"v") for _ in range(MOST_HEADERS))
    long: Headers = (("h", bytes(LONGEST_HEADERS - 5)),)
    for headers in (many, long):
        tail = tail_of(None, b"v", headers)
        shapes.learn_tail(tail, 0, len(tail), (None, b"v", headers))
        assert shapes.tail(len(tail), no_tail)(tail, 0) == (None, b"v", headers)
    tail = tail_of(None, bytes(LONGEST_TAIL - 10), (("h", b"v"),))
    shapes.learn_tail(tail, 0, len(tail), (None, bytes(LONGEST_TAIL - 10), (("h", b"v"),)))
    assert shapes.tail(len(tail)) is not None


def test_a_number_that_takes_more_bytes_than_it_needs_is_not_learnt(shapes: Shapes) -> None:
    tail = encoded(1, b"k", 1, b"v", 1, 1, b"h", b"\x82\0", b"v")
    shapes.learn_tail(tail, 0, len(tail), (b"k", b"v", (("h", b"v"),)))
    assert shapes.tail(len(tail)) is None


def test_headers_that_were_read_are_learnt(shapes: Shapes) -> None:
    no_more_tails(shapes)
    read_all(made(TELLING), shapes)
    block = block_of(TELLING)
    reader = shapes.headers(len(block))
    assert reader is not None and reader(block, 0, len(block)) == TELLING


def test_a_size_of_many_shapes_is_given_up(shapes: Shapes) -> None:
    for number in range(TAILS_OF_A_SIZE + 1):
        headers: Headers = (("h", bytes(number)), ("i", bytes(9 - number)))
        tail = tail_of(None, b"v", headers)
        assert shapes.tail(len(tail), no_tail)(tail, 0) is None
        shapes.learn_tail(tail, 0, len(tail), (None, b"v", headers))
        known = shapes.tail(len(tail), no_tail)(tail, 0)
        assert known == (None if number == TAILS_OF_A_SIZE else (None, b"v", headers))


def test_learning_is_paid_for_by_misses(shapes: Shapes) -> None:
    """Where no record resembles another one."""

    def learn(number: int) -> bool:
        headers: Headers = ((f"{number:04}", b"v"), ("h", b"v"))
        block = block_of(headers)
        shapes.learn_headers(block, 0, len(block), headers)
        reader = shapes.headers(len(block), shapes.by_names)
        return reader(block, 0, len(block)) is not None

    learnt = sum(learn(number) for number in range(PRICE * FREE))
    assert FREE <= learnt <= 2 * FREE
    learnt = sum(learn(number) for number in range(10_000 - PRICE * FREE, 10_000))
    assert FREE - 1 <= learnt <= FREE + 1


def test_so_many_sizes_are_known_at_once(shapes: Shapes) -> None:
    def learn(size: int) -> bool:
        headers: Headers = (("h", bytes(size)),)
        tail = tail_of(None, b"v", headers)
        shapes.learn_tail(tail, 0, len(tail), (None, b"v", headers))
        return shapes.tail(len(tail)) is not None

    paid(shapes)
    assert [size for size in range(500) if learn(size)] == list(range(MOST_SIZES))


def test_all_is_forgotten_in_the_end(shapes: Shapes) -> None:
    tail = tail_of(b"key", b"value", TELLING)
    shapes.learn_tail(tail, 0, len(tail), (b"key", b"value", TELLING))
    misses = 1
    while shapes.tail(len(tail)) is not None:
        shapes.learn_tail(b"\1\1\0", 0, 3, (None, None, ()))
        misses += 1
    assert misses == FORGET_AFTER
    shapes.learn_tail(tail, 0, len(tail), (b"key", b"value", TELLING))
    assert shapes.tail(len(tail)) is not None

"""What is read by shapes is what is read number by number, on sound bytes and on damaged ones; and what is learnt."""

from __future__ import annotations

from collections.abc import Callable

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
    MORE_OFTEN,
    MOST_HEADERS,
    MOST_NAMES,
    MOST_SETS,
    MOST_SIZES,
    MOST_VALUES,
    PRICE,
    SELDOM,
    STRAYS,
    WIDE,
    Shapes,
    no_reader,
)
from leafcuttr.wire.records import Record, decode_alike, decode_records, encode_batch
from leafcuttr.wire.shape_readers import LONGEST_TAIL
from leafcuttr_sdk.records import Headers, StoredRecord
from leafcuttr_sdk.types import TopicPartition
from support.gates_slice import sampled

PARTITION = TopicPartition("t", 3)
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


def learn(shapes: Shapes, key: bytes | None, value: bytes | None, headers: Headers) -> None:
    tail, block = tail_of(key, value, headers), block_of(headers)
    shapes.learn(b"_" + tail + b"_", 1, 1 + len(tail) - len(block), 1 + len(tail), key, value, headers)


def known(shapes: Shapes, tail: bytes) -> tuple[bytes | None, bytes | None, Headers] | None:
    """Key, value and headers, if the shape is known."""
    for behind in (b"", b"__"):
        record = shapes.read(b"__" + tail + behind, 2, 2 + len(tail), 11, 12)
        if record is None:
            return None
        assert type(record) is StoredRecord
        assert record[:4] == ("t", 3, 11, 12)
    return record[4:]


def by_sets() -> Shapes:
    return Shapes(PARTITION)


def by_sizes() -> Shapes:
    """One that reads by sizes."""
    shapes = Shapes(PARTITION)
    for number in range(MOST_SETS + 1):
        learn(shapes, None, b"v", (("set", b"%d" % number),))
    return shapes


def by_names(ways: str = "", key: bytes | None = None, value: bytes | None = b"v") -> Shapes:
    """One that reads by names. If `ways` are given, headers of `TELLING` in these, and the key and the value are those
    whose sizes are looked for first."""
    shapes = by_sizes()
    for number in range(MOST_SIZES):
        learn(shapes, None, bytes(200 + number), (("size", b"v"),))
    if ways:
        learn(shapes, key, value, TELLING)
        shapes._names[0]._ways[:] = ways
        shapes._make()
    return shapes


WAYS = [by_sets, by_sizes, by_names]
TELLING: Headers = (("source", b"north"), ("unit", b"C"), (NOT_TEXT, b"\xff"), ("trace", b"0123456789abcdef"))


def read_all(batch: bytes, shapes: Shapes | None) -> tuple[list[Record], str]:
    """The records, and what was said of the first that is broken."""
    found: list[Record] = []
    try:
        for fields in decode_records(batch) if shapes is None else decode_alike(batch, shapes):
            assert type(fields) is Record or fields[:2] == ("t", 3)
            found.append(Record(*fields[-5:]))
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


@given(st.sampled_from(WAYS), st.lists(alike(), min_size=1, max_size=4), st.integers(0, 3), st.data())
@settings(max_examples=sampled(400), deadline=None)
def test_with_shapes_the_same_is_read(
    way: Callable[[], Shapes], drawn: list[list[Record]], damages: int, data: st.DataObject
) -> None:
    shapes = way()
    for records in drawn:
        batch = encode_batch(records)
        assert read_all(bytes(batch), shapes) == (records, "")
        for _ in range(damages):
            at = data.draw(st.integers(HEADER_SIZE, len(batch) - 1))
            batch[at] = data.draw(st.sampled_from([0, 1, 3, 0x7F, 0x80, 0x81, 0xFF]) | st.integers(0, 255))
        assert read_all(bytes(batch), shapes) == read_all(bytes(batch), None)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("key", [b"key", b"k" * 70, b"", None])
@pytest.mark.parametrize("value", [b"value", b"v" * 70, b"", None])
@pytest.mark.parametrize("way", ["sets", "sizes", "kkkk", "cccc", "wwww", "kcwk", "of these sizes"])
def test_every_byte_that_differs_is_noticed(way: str, key: bytes | None, value: bytes | None) -> None:
    shapes = {
        "sets": by_sets, "sizes": by_sizes, "of these sizes": lambda: by_names("kcwk", key, value)
    }.get(way, lambda: by_names(way))()  # fmt: skip
    sound = bytes(encode_batch([Record(0, 7, key, value, TELLING)]))
    learn(shapes, key, value, TELLING)
    tail = tail_of(key, value, TELLING)
    if way != "sizes" or value is not None:
        assert known(shapes, tail) == (key, value, TELLING)
    state = dict(vars(shapes))
    for at in range(HEADER_SIZE, len(sound)):
        for byte in (0, 1, 5, 0x80, 0xFF, sound[at] ^ 2):
            changed = sound[:at] + bytes([byte]) + sound[at + 1 :]
            assert read_all(changed, shapes) == read_all(changed, None)
            vars(shapes).update(state)  # what is learnt of it is not the subject


@pytest.fixture(params=WAYS)
def shapes(request: pytest.FixtureRequest) -> Shapes:
    way: Callable[[], Shapes] = request.param
    return way()


@pytest.mark.parametrize("key", [b"key", b"", None, b"k" * 200])
def test_what_has_been_read_is_known(shapes: Shapes, key: bytes | None) -> None:
    for value in (b"value", b"", b"v" * 63, b"v" * 64, b"v" * 7000):
        learn(shapes, key, value, TELLING)
        assert known(shapes, tail_of(key, value, TELLING)) == (key, value, TELLING)
        other = b"x" * len(value)
        assert known(shapes, tail_of(key, other, TELLING)) == (key, other, TELLING)
    assert known(shapes, b"") is None
    assert known(shapes, tail_of(key, b"value", ())) is None
    assert known(shapes, tail_of(key, b"value", (("other", b"north"), *TELLING[1:]))) is None
    assert known(shapes, tail_of(key, b"value", TELLING) + b"\0") is None


def test_equal_headers_are_one_object() -> None:
    shapes = Shapes(PARTITION)
    for key, value in ((b"key", b"value"), (None, None), (b"k" * 100, b"v" * 1000)):
        batch = encode_batch([Record(n, 7, key, value, TELLING) for n in range(3)])
        first, *others = [headers for *_, headers in decode_alike(batch, shapes)]
        assert first == TELLING
        assert all(other is shapes._sets[block_of(TELLING)] for other in others)


@pytest.mark.parametrize("seldom", [False, True])
def test_many_sets_are_begun_anew_if_they_are_seldom(seldom: bool) -> None:
    shapes = Shapes(PARTITION)
    sets: list[Headers] = [(("set", b"%d" % number),) for number in range(MOST_SETS + 1)]
    for one in sets[:-1]:
        learn(shapes, None, b"v", one)
    for one in sets[:-1]:
        assert known(shapes, tail_of(b"other", b"w", one)) == (b"other", b"w", one)
    shapes.records = MORE_OFTEN * MOST_SETS - 1 + seldom
    learn(shapes, None, b"v", sets[-1])
    assert known(shapes, tail_of(None, b"v", sets[0])) is None
    assert known(shapes, tail_of(None, b"v", sets[-1])) == (None, b"v", sets[-1])
    longer = tail_of(None, b"value", sets[-1])
    assert known(shapes, longer) == ((None, b"value", sets[-1]) if seldom else None)
    assert shapes.records == (0 if seldom else MORE_OFTEN * MOST_SETS - 1)


def test_records_are_counted() -> None:
    shapes = Shapes(PARTITION)
    for _ in range(2):
        read_all(bytes(encode_batch([Record(n, 7, None, b"v", TELLING) for n in range(5)])), shapes)
    assert shapes.records == 10


@pytest.mark.parametrize("key", [b"key", b"", None])
def test_a_tail_is_known_by_its_sizes(key: bytes | None) -> None:
    shapes = by_sizes()
    learn(shapes, key, b"value", TELLING)
    other: Headers = (("source", b"south"), *TELLING[1:])
    assert known(shapes, tail_of(key, b"VALUE", other)) == (key, b"VALUE", other)
    for same_size in (
        tail_of(key, b"valu", (("source", b"north!"), *TELLING[1:])),
        tail_of(key, b"value", (("sourcE", b"north"), *TELLING[1:])),
        tail_of(key, b"value", (("source", b"nort"), ("unit", b"CC"), *TELLING[2:])),
        tail_of(key, b"value!", (("source", b"nort"), *TELLING[1:])),
    ):
        assert len(same_size) == len(tail_of(key, b"value", TELLING))
        assert known(shapes, same_size) is None


def test_the_sizes_of_the_first_tails_are_known_and_then_names() -> None:
    shapes = by_sizes()
    values = [bytes(100 + number) for number in range(MOST_SIZES)]
    for value in values[1:]:
        learn(shapes, b"k", value, TELLING)
        assert known(shapes, tail_of(b"k", value, TELLING)) == (b"k", value, TELLING)
    assert all(known(shapes, tail_of(b"k", value, TELLING)) for value in values[1:])
    assert known(shapes, tail_of(b"k", b"any size", TELLING)) is None
    learn(shapes, b"k", values[0], TELLING)
    assert known(shapes, tail_of(b"k", b"any size", TELLING)) == (b"k", b"any size", TELLING)


@pytest.mark.parametrize("key", [b"k", None])
@pytest.mark.parametrize("ways", ["kkkk", "cccc", "wwww", "kcwk", "cwkc"])
def test_headers_of_any_size_are_known_by_their_names(ways: str, key: bytes | None) -> None:
    shapes = by_names(ways, key)
    sizes = [0, 1, 2, 62, 63, 64, 65, 127, 128, 129, 300]
    for place, way in enumerate(ways):
        for size in sizes:
            headers = list(TELLING)
            headers[place] = headers[place][0], b"\xfe" * size
            due = (b"k", b"v", tuple(headers)) if way == "w" or size < WIDE else None
            assert known(shapes, tail_of(b"k", b"v", tuple(headers))) == due
            headers[place] = headers[place][0], None
            assert known(shapes, tail_of(b"k", b"v", tuple(headers))) is None


@pytest.mark.parametrize("key", [b"key", b"", None, b"k" * 70])
@pytest.mark.parametrize("value", [b"value", b"", b"v" * 70])
def test_keys_and_values_of_the_first_sizes_are_cut_out_at_once(key: bytes | None, value: bytes) -> None:
    shapes = by_names("kcwk", key, value)
    shapes._names[0]._free = no_reader
    assert known(shapes, tail_of(key, value, TELLING)) == (key, value, TELLING)
    for one, other in ((b"longer" * 20, value), (key, value + b"+")):
        assert known(shapes, tail_of(one, other, TELLING)) is None, "it is left to the other reader"
    assert known(shapes, tail_of(key, value, (("other", b"north"), *TELLING[1:]))) is None
    assert shapes._names[0]._strays == 2, "other names make no stray"


@pytest.mark.parametrize("seldom", [False, True], ids=["at once", "seldom at first"])
def test_sizes_that_do_not_come_back_are_looked_for_no_more(seldom: bool) -> None:
    shapes = by_names("kcwk", b"key", b"value")
    names, made = shapes._names[0], shapes._made
    for number in range(STRAYS * (3 if seldom else 1)):
        assert names._front is not None
        # At once, or in the third row of strays, after two in which they were seldom.
        shapes.records += SELDOM - (number == (2 * STRAYS if seldom else 0))
        stray = b"key", b"v" * (6 + number % 9)
        tail = tail_of(*stray, TELLING)
        record = shapes.read(tail, 0, len(tail), 11, 12)
        assert record is not None and record[4:] == (*stray, TELLING)
    assert names._front is None
    assert shapes._made == made
    for value in (b"value", b"other value"):
        assert known(shapes, tail_of(b"key", value, TELLING)) == (b"key", value, TELLING)
    assert names._strays == 0, "none is counted any more"


def test_a_long_value_makes_its_header_wide() -> None:
    shapes = by_names("kkck")
    long: Headers = (*TELLING[:2], (NOT_TEXT, bytes(WIDE)), TELLING[3])
    assert known(shapes, tail_of(b"k", b"v", long)) is None
    read_all(bytes(encode_batch([Record(0, 7, b"k", b"v", long)])), shapes)
    assert known(shapes, tail_of(b"k", b"v", long)) == (b"k", b"v", long)
    assert known(shapes, tail_of(b"k", b"v", TELLING)) == (b"k", b"v", TELLING)
    assert shapes._names[0]._ways == ["k", "k", "w", "k"]
    made = shapes._made
    learn(shapes, b"k", b"v", long)
    assert shapes._made == made, "there is nothing to be learnt"


@pytest.mark.parametrize("way", "kcw")
@pytest.mark.parametrize(
    "block",
    [
        encoded(1, 1, b"h", 2000, bytes(9)),  # beyond all bytes that there are
        encoded(1, 1, b"h", 3, bytes(2)),
        encoded(1, 1, b"h", 1, bytes(2)),
        encoded(1, 1, b"h", -1),
        encoded(1, 1, b"h", -40, bytes(20)),
        encoded(1, 1, b"h", -100, bytes(100)),
        encoded(1, 1, b"h"),
        encoded(1, 1, b"h", b"\x80"),
        encoded(1, 1, b"h", b"\x82\x80\x80\x00", bytes(1)),
        encoded(1, 1, b"h", b"\xfe\x80\x01", bytes(8191 + 127)),
        encoded(1, 1, b"h", b"\xfe\x80\x01", bytes(127)),
        encoded(2, 1, b"h", 1, bytes(1)),
        encoded(1, 1, b"f", 1, bytes(1)),
        encoded(1, 1),
        encoded(1),
    ],
)
def test_names_do_not_read_what_they_cannot(way: str, block: bytes) -> None:
    shapes = by_names()
    learn(shapes, None, b"v", (("h", b"v"),))
    shapes._names[0]._ways[:] = way
    shapes._make()
    front = encoded(1, b"k", 1, b"v")
    sound = encoded(1, 1, b"h", 5, bytes(5))
    assert known(shapes, front + sound) == (b"k", b"v", (("h", bytes(5)),))
    assert known(shapes, front + block) is None


@pytest.mark.parametrize(
    "front",
    [
        encoded(-1, -2, b""),
        encoded(-2, 1, b"v"),
        encoded(-100, bytes(100), 1, b"v"),
        encoded(1, b"k", -100, bytes(100)),
        encoded(2000, b"k", 1, b"v"),
        encoded(1, b"k", 2000, b"v"),
        encoded(b"\x82\x80\0", b"k", 1, b"v"),
        encoded(1, b"k", b"\x82\x80\0", b"v"),
        encoded(9000, bytes(9000), 1, b"v"),
        encoded(1, b"k", 9000, bytes(9000)),
        encoded(1, b"k"),
        encoded(1, b"k", b"\x82"),
    ],
)
def test_keys_and_values_that_are_not_read_by_shapes(shapes: Shapes, front: bytes) -> None:
    learn(shapes, b"k", b"v", TELLING)
    assert known(shapes, encoded(1, b"k", 1, b"v") + block_of(TELLING))
    assert known(shapes, front + block_of(TELLING)) is None
    assert known(shapes, front) is None


def test_a_size_in_more_bytes_than_it_needs() -> None:
    """As it is read number by number. By sizes it is not learnt."""
    tail = encoded(b"\x82\0", b"k", b"\x82\0", b"v", 1, 1, b"h", b"\x82\0", b"w")
    due = (b"k", b"v", (("h", b"w"),))
    for shapes, found in ((by_sets(), due), (by_sizes(), None), (by_names(), None)):
        shapes.learn(tail, 0, 6, len(tail), *due)
        assert known(shapes, tail) == found
    shapes = by_names()
    learn(shapes, b"k", b"v", (("h", b"w" * WIDE),))
    assert known(shapes, tail) == due


def test_the_oldest_names_give_way() -> None:
    shapes = by_names()
    shapes._missed = PRICE * 99
    kinds: list[Headers] = [((f"name{number}", b"v"), ("other", b"w")) for number in range(MOST_NAMES + 1)]
    for one in kinds:
        learn(shapes, b"k", b"v", one)
    assert [known(shapes, tail_of(b"k", b"v", one)) for one in kinds] == [
        None, *((b"k", b"v", one) for one in kinds[1:])
    ]  # fmt: skip


def values_of(shapes: Shapes, number: int, few: int) -> Headers:
    """Read the n-th of records with three headers: one that is another each time, one of few values, and a last."""
    headers: Headers = (
        ("first", b"%d" % number),
        ("few", b"%d" % (number % few)),
        ("last", b"%06d" % number),
    )
    found = known(shapes, tail_of(None, b"v", headers))
    assert found is not None and found == (None, b"v", headers)
    return found[2]


@pytest.mark.parametrize("few", [3, 1000])
def test_headers_of_few_values_are_known_by_their_bytes(few: int) -> None:
    shapes = by_names()
    learn(shapes, None, b"v", (("first", b""), ("few", b""), ("last", b"")))
    made = shapes._made
    first = [values_of(shapes, number, few) for number in range(MOST_VALUES)]
    assert shapes._names[0]._ways == ["c", "k", "c"]
    assert shapes._made == made + 2
    again = values_of(shapes, 2, few)
    assert again[1] is first[2][1]
    assert again[0] is not first[2][0]
    assert sum(len(each) for names in shapes._names for each in names._known) + shapes._left == MOST_VALUES


def test_headers_known_by_their_bytes_are_bounded_over_all_names() -> None:
    shapes = by_names()
    shapes._missed = PRICE * 99
    for number in range(3 * MOST_VALUES):
        headers: Headers = ((f"name{number % 3}", b"%d" % (number % 1700)), ("other", b""))
        if known(shapes, tail_of(None, b"v", headers)) is None:
            learn(shapes, None, b"v", headers)
        held = sum(len(each) for names in shapes._names for each in names._known)
        assert held + shapes._left == MOST_VALUES and shapes._left >= 0
    for number in range(MOST_NAMES):
        learn(shapes, None, b"v", ((f"new{number}", b""),))
    assert shapes._left == MOST_VALUES, "of names that gave way nothing is held"


def test_long_names_are_not_known_by_their_bytes() -> None:
    shapes = by_names()
    headers: Headers = (("n" * WIDE, b"v"), ("n" * 10, b"v"))
    learn(shapes, None, b"v", headers)
    assert shapes._names[0]._ways == ["c", "k"]
    assert known(shapes, tail_of(None, b"w", headers)) == (None, b"w", headers)


@pytest.mark.parametrize(
    ("key", "value", "headers", "ways"),
    [
        (b"k", None, (("h", b"v"),), "sets names"),
        (b"k", b"v", (("h", None),), "sets"),
        (b"k", b"v", tuple(("h", b"v") for _ in range(MOST_HEADERS)), "sets sizes names"),
        (b"k", b"v", tuple(("h", b"v") for _ in range(MOST_HEADERS + 1)), "sets"),
        (b"k", b"v", (("h", bytes(LONGEST_HEADERS - 5)),), "sets sizes names"),
        (b"k", b"v", (("h", bytes(LONGEST_HEADERS - 4)),), ""),
        (None, bytes(LONGEST_TAIL - 8), (("h", b"v"),), "sets sizes names"),
        (None, bytes(LONGEST_TAIL - 7), (("h", b"v"),), ""),
    ],
)
def test_what_is_learnt(key: bytes, value: bytes | None, headers: Headers, ways: str) -> None:
    tail = tail_of(key, value, headers)
    for name, way in (("sets", by_sets), ("sizes", by_sizes), ("names", by_names)):
        shapes = way()
        learn(shapes, key, value, headers)
        assert known(shapes, tail) == ((key, value, headers) if name in ways.split() else None), name
        batch = encode_batch([Record(n, 7, key, value, headers) for n in range(20)])
        assert [tuple(each)[-3:] for each in decode_alike(batch, shapes)] == [(key, value, headers)] * 20


def test_headers_that_were_read_are_learnt(shapes: Shapes) -> None:
    read_all(bytes(encode_batch([Record(0, 7, b"k", b"value", TELLING)])), shapes)
    assert known(shapes, tail_of(b"k", b"value", TELLING)) == (b"k", b"value", TELLING)


def test_new_names_are_paid_for_by_misses() -> None:
    """Where no record resembles another one."""
    shapes = by_names()

    def is_learnt(number: int) -> bool:
        headers: Headers = ((f"{number:04}", b"v"), ("h", b"v"))
        learn(shapes, b"k", b"v", headers)
        return known(shapes, tail_of(b"k", b"v", headers)) is not None

    learnt = [is_learnt(number) for number in range(PRICE * 20)]
    assert sum(learnt) in (FREE + 19, FREE + 20)
    assert all(learnt[: FREE - 1])
    assert sum(learnt[PRICE:]) in (19, 20)


@pytest.mark.one_in(2)
def test_all_is_forgotten_in_the_end(shapes: Shapes) -> None:
    learn(shapes, b"key", b"value", TELLING)
    tail = tail_of(b"key", b"value", TELLING)
    missed = shapes._missed
    while known(shapes, tail) is not None:
        shapes.learn(tail, 0, 0, LONGEST_TAIL + 1, b"", b"", TELLING)
        missed += 1
    assert missed == FORGET_AFTER
    learn(shapes, b"key", b"value", TELLING)
    assert known(shapes, tail) == (b"key", b"value", TELLING)
    assert shapes.read.__name__ == "read" and list(shapes._sets.values()) == [TELLING]


def test_headers_of_long_records_are_known_by_their_bytes(shapes: Shapes) -> None:
    def read(headers: Headers, value: bytes = bytes(LONGEST_TAIL)) -> Headers:
        records = [Record(n, 7, b"k", value, headers) for n in range(2)]
        found, words = read_all(bytes(encode_batch(records)), shapes)
        assert (found, words) == (records, "")
        return found[1].headers

    assert read(TELLING) is read(TELLING, bytes(LONGEST_TAIL + 1)) is shapes.of_long(block_of(TELLING))
    assert read((), bytes(LONGEST_TAIL)) == ()
    for number in range(2 * MOST_SETS):
        read((("set", b"%d" % number),))
    assert len(shapes._long) == MOST_SETS


@pytest.mark.parametrize(("last", "due"), [(b"last", 1), (b"", 3), (b"\0", 3)])
def test_records_with_headers_among_others_are_read_by_shapes(shapes: Shapes, last: bytes, due: int) -> None:
    """But for the first one behind one without, and those that may be without, by their last byte."""
    some: Headers = (("first", b"v"), ("last", last))
    records = [Record(n, 7, b"k", b"v", () if n % 2 else some) for n in range(8)]
    batch = bytes(encode_batch(records))
    missed = []
    for _ in range(3):
        before = shapes._missed
        assert read_all(batch, shapes) == (records, "")
        missed.append(shapes._missed - before)
    assert missed[1:] == [due, due]

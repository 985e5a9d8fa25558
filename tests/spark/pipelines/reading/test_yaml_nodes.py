"""YAML as nodes: lines, texts as they are written, bounds."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from leafcuttr_spark.pipelines.reading.yaml_nodes import (
    DEEPEST,
    MOST_BYTES,
    MOST_NODES,
    Entries,
    Items,
    Node,
    Scalar,
    YamlError,
    read_yaml,
)


def plain(node: Node) -> object:
    """Without lines."""
    match node:
        case Items(items):
            return [plain(item) for item in items]
        case Entries(entries):
            return {key.text: plain(value) for key, value in entries}
        case Scalar(text):
            return None if node.is_null else text


def wrong(text: str | bytes) -> tuple[int, str]:
    with pytest.raises(YamlError) as raised:
        read_yaml(text.encode() if isinstance(text, str) else text)
    return raised.value.line, raised.value.what


def test_scalars_are_texts_as_they_are_written_and_keys_too() -> None:
    text = "on: 1.10\nyes: no\nn: 0x1f\nempty:\nnull_: ~\nquoted: '~'\n"
    root = read_yaml(text.encode())
    assert plain(root) == {
        "on": "1.10",
        "yes": "no",
        "n": "0x1f",
        "empty": None,
        "null_": None,
        "quoted": "~",
    }


def test_nodes_have_their_lines() -> None:
    root = read_yaml(b"a: 1\nb:\n  - x\n  - {y: z}\nc: |\n  two\n  lines\nd: 5\n")
    assert isinstance(root, Entries)
    assert [(key.text, key.line) for key, _ in root.entries] == [("a", 1), ("b", 2), ("c", 5), ("d", 8)]
    items = root.get("b")
    assert isinstance(items, Items) and [item.line for item in items.items] == [3, 4]


def test_aliases_and_merged_mappings() -> None:
    text = "base: &b {x: 1, y: 2}\nmore: &m {y: 9, z: 3}\none: *b\ntwo: {<<: [*b, *m], y: 5}\nthree: {y: 7, <<: *b}\n"
    found = plain(read_yaml(text.encode()))
    assert isinstance(found, dict)
    assert found["one"] == {"x": "1", "y": "2"}
    assert found["two"] == {"y": "5", "x": "1", "z": "3"}
    assert found["three"] == {"y": "7", "x": "1"}


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("a: 1\nb: [1, 2\n", 3, "this is not YAML: expected ',' or ']', but got '<stream end>'"),
        ("a: b: c\n", 1, "this is not YAML: mapping values are not allowed here"),
        ("a: 1\nb: 2\na: 3\n", 3, "the key a comes twice"),
        ("a: 1\n---\nb: 2\n", 2, "there is a second document; a file has one pipeline"),
        ("? [a, b]\n: 1\n", 1, "a key has to be a text"),
        ("x: 1\na: !!python/object/apply:os.system [ls]\n", 2, None),
        (
            "a: !!binary aGk=\n",
            1,
            "the tag tag:yaml.org,2002:binary is not allowed; of all tags only !!str is",
        ),
        ("a: &x [1, *x]\n", 1, "the alias *x is within what it names: a circle"),
        ("a: &x\n  b: &y\n    c: *x\n", 3, "the alias *x is within what it names: a circle"),
        ("a: *x\n", 1, "there is no anchor &x before this alias"),
        ("a: {<<: 5}\n", 1, "<< takes a mapping, or a list of them"),
        ("a: \x01\n", 1, "YAML has no character #x0001"),
        ("a: 1\nb: @x\n", 2, "this is not YAML: found character '@' that cannot start any token"),
        ("", 0, "the file is empty; `leafcuttr spark init` writes one to begin with"),
        ("# nothing\n", 0, "the file is empty; `leafcuttr spark init` writes one to begin with"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_with_its_line(text: str, line: int, what: str | None) -> None:
    found = wrong(text)
    assert found[0] == line
    assert "\n" not in found[1]
    assert what is None or found[1] == what


def test_bytes_that_are_no_utf_8() -> None:
    assert wrong(b"a: 1\nb: \xff\n") == (2, "this is not UTF-8")


def test_a_file_that_is_too_large() -> None:
    line, what = wrong(b"#" * (MOST_BYTES + 1))
    assert (line, what) == (0, f"the file has {MOST_BYTES + 1} bytes; at most {MOST_BYTES} are read")


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(12)
)
MERGES = "a: &a {k0: 1}\n" + "".join(
    f"m{n}: &m{n} {{k{n}: 1, <<: [{', '.join(['*a'] * 9)}]}}\n" for n in range(9)
)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("text", "what"),
    [
        (BOMB, f"these are more than {MOST_NODES} values, those of aliases counted each time"),
        ("[" * 5000 + "]" * 5000, f"this is nested more than {DEEPEST} deep"),
        (
            "a:\n" + "".join(f"{' ' * n}- \n" for n in range(1, 200)),
            f"this is nested more than {DEEPEST} deep",
        ),
        (
            "[" + "x, " * 20_001 + "]",
            f"these are more than {MOST_NODES} values, those of aliases counted each time",
        ),
    ],
    ids=["aliases", "brackets", "indents", "many"],
)
def test_what_explodes_is_refused_within_bounds(text: str, what: str) -> None:
    tracemalloc.start()
    began = time.process_time()
    try:
        assert wrong(text)[1] == what
        assert time.process_time() - began < 10
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def test_depth_that_aliases_make_counts() -> None:
    steps = "".join(f"s{n}: &s{n} [[[[[*s{n - 1}]]]]]\n" for n in range(1, 12))
    assert wrong("s0: &s0 [x]\n" + steps)[1] == f"this is nested more than {DEEPEST} deep"

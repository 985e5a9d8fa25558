"""The parser and protoc agree: on which texts are right, and on what their descriptors are."""

from __future__ import annotations

import os
import re
from importlib.metadata import distributions
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leafcuttr_registry.budget import Budget
from leafcuttr_registry.protobuf.format import FORMAT
from leafcuttr_registry.protobuf.lexer import tokens_of
from leafcuttr_registry.protobuf.link import link
from leafcuttr_sdk.schemas import ResolvedReference, SchemaError
from registry.protobuf.protoc import INCLUDED, compiled, compiled_files, with_options
from registry.protobuf.snippets import TEXTS
from support.gates_slice import sampled


def is_right(text: str) -> bool:
    try:
        link(text, {}, Budget(10**9))
    except SchemaError:
        return False
    return True


OURS_ALONE = {
    # A string of a descriptor is UTF-8, and this one has no UTF-8.
    "escape above Unicode",
    "default of no UTF-8",
}
"""Texts that only we refuse, and why."""


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", TEXTS)
def test_a_text_is_right_or_wrong_for_both(name: str, tmp_path: Path) -> None:
    text = TEXTS[name]
    # The file of a schema without a name is called so.
    theirs = compiled({"default": text}, tmp_path)
    try:
        ours = link(text, {}, Budget(10**9)).source.proto
    except SchemaError as error:
        assert isinstance(theirs, str) or name in OURS_ALONE, str(error)
        assert error.line is not None or "line" not in theirs
        return
    assert not isinstance(theirs, str), theirs
    assert str(with_options(ours, theirs)) == str(with_options(theirs.file[-1], theirs))


@pytest.mark.long
def test_the_texts_are_of_both_kinds(tmp_path: Path) -> None:
    right = sum(not isinstance(compiled({"default": text}, tmp_path), str) for text in TEXTS.values())
    assert right > 100
    assert len(TEXTS) - right > 160


VISIBLE = """edition = "2024"; package p; {option}
message Top {{ message Within {{}} export message Shown {{}} enum Inner {{ INNER_ZERO = 0; }} }}
local message Hidden {{}} export enum Color {{ COLOR_ZERO = 0; }}
"""


@pytest.mark.parametrize("option", ["", "EXPORT_ALL", "EXPORT_TOP_LEVEL", "LOCAL_ALL"])
@pytest.mark.parametrize("type_", ["Top", "Top.Within", "Top.Shown", "Top.Inner", "Hidden", "Color"])
def test_types_that_other_files_may_use(option: str, type_: str, tmp_path: Path) -> None:
    given = f"option features.default_symbol_visibility = {option};" if option else ""
    texts = {
        "a.proto": VISIBLE.format(option=given),
        "default": f'syntax = "proto3"; import "a.proto"; message M {{ repeated p.{type_} a = 1; }}',
    }
    theirs = compiled(texts, tmp_path)
    try:
        link(texts["default"], {"a.proto": ResolvedReference(texts["a.proto"], {})}, Budget(10**6))
    except SchemaError as error:
        assert isinstance(theirs, str), error
        return
    assert not isinstance(theirs, str), theirs


RIGHT = [name for name, text in TEXTS.items() if is_right(text)]
NUMBERS = [
    "0",
    "1",
    "2",
    "5",
    "19000",
    "536870911",
    "-1",
    "0x7",
    "2147483647",
    "18446744073709551615",
    "1.5",
    "inf",
]
EVERYTHING = os.environ.get("LEAFCUTTR_PROTO_CORPUS", "") == "all"


@settings(
    max_examples=2000 if EVERYTHING else sampled(150),
    derandomize=not EVERYTHING,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.data())
def test_a_text_that_was_changed_is_right_or_wrong_for_both(tmp_path: Path, data: st.DataObject) -> None:
    """Right texts with tokens replaced by others of their kind, statements repeated, other numbers."""
    tokens = tokens_of(TEXTS[data.draw(st.sampled_from(RIGHT))], Budget(10**6)).texts[:-1]
    for _ in range(data.draw(st.integers(1, 2))):
        if not tokens:
            return
        at = data.draw(st.integers(0, len(tokens) - 1))
        how = data.draw(st.sampled_from(["alike", "number", "repeated", "gone"]))
        if how == "alike":
            alike = [each for each in tokens if each[0].isalpha() == tokens[at][0].isalpha()]
            tokens[at] = data.draw(st.sampled_from(alike))
        elif how == "number":
            places = [place for place, each in enumerate(tokens) if each[0].isdigit()]
            if places:
                tokens[data.draw(st.sampled_from(places))] = data.draw(st.sampled_from(NUMBERS))
        elif how == "repeated":
            end = data.draw(st.integers(at, len(tokens)))
            tokens[end:end] = tokens[at:end]
        else:
            del tokens[at]
    text = " ".join(tokens)
    theirs = compiled({"default": text}, tmp_path)
    try:
        ours = link(text, {}, Budget(10**9)).source.proto
    except SchemaError as error:
        assert isinstance(theirs, str) or "UTF-8" in str(error) or "escape" in str(error), (text, str(error))
        return
    assert not isinstance(theirs, str), (text, theirs)
    assert str(with_options(ours, theirs)) == str(with_options(theirs.file[-1], theirs)), text


def real_files() -> dict[str, dict[str, Path]]:
    """`.proto` files of packages: of grpcio-tools and googleapis-common-protos, or of all that are installed where
    LEAFCUTTR_PROTO_CORPUS says `all`. By package: the names by which they import one another."""
    wanted = os.environ.get("LEAFCUTTR_PROTO_CORPUS", "")
    found: dict[str, dict[str, Path]] = {}
    for distribution in distributions():
        package = distribution.metadata["Name"]
        if wanted != "all" and package not in ("grpcio-tools", "googleapis-common-protos"):
            continue
        for file in distribution.files or ():
            if file.suffix == ".proto":
                name = str(file).removeprefix("grpc_tools/_proto/")
                found.setdefault(package, {})[name] = Path(str(distribution.locate_file(file)))
    return found


FILES = real_files()
IMPORT = re.compile(r'^\s*import\s+(?:public\s+|weak\s+)?["\'](.+?)["\']', re.MULTILINE)


def references_of(
    name: str, files: dict[str, Path], seen: tuple[str, ...] = ()
) -> dict[str, ResolvedReference]:
    text = files[name].read_text(encoding="utf-8")
    return {
        each: ResolvedReference(
            files[each].read_text(encoding="utf-8"), references_of(each, files, (*seen, name))
        )
        for each in IMPORT.findall(text)
        if each in files and each not in seen
    }


@pytest.mark.one_in(2)
@pytest.mark.parametrize("package", sorted(FILES))
def test_real_files_have_the_descriptors_of_protoc(package: str, tmp_path: Path) -> None:
    files = {name: path for each in FILES.values() for name, path in each.items()}
    compared = 0
    for name, path in FILES[package].items():
        roots = [Path(str(path).removesuffix(name)), INCLUDED.parent.parent]
        theirs = compiled_files([name], roots, tmp_path)
        try:
            linked = link(path.read_text(encoding="utf-8"), references_of(name, files), Budget(10**9))
        except SchemaError as error:
            assert isinstance(theirs, str), f"{name}: {error}"
            continue
        assert not isinstance(theirs, str), theirs
        linked.source.proto.name = theirs.file[-1].name
        assert str(with_options(linked.source.proto, theirs)) == str(with_options(theirs.file[-1], theirs)), (
            name
        )
        compared += 1
    assert compared > 0


def test_the_corpus_is_not_empty() -> None:
    assert sum(len(files) for files in FILES.values()) >= 70


@pytest.mark.one_in(3)
@pytest.mark.parametrize("package", sorted(FILES))
def test_real_files_survive_each_form(package: str) -> None:
    """Canonical, normalized and as a descriptor: each one is read again, and is then what it was."""
    files = {name: path for each in FILES.values() for name, path in each.items()}
    for name in FILES[package]:
        references = references_of(name, files)
        try:
            schema = FORMAT.parse(files[name].read_text(encoding="utf-8"), references)
        except SchemaError:
            continue
        again = FORMAT.parse(schema.canonical, references)
        assert again.canonical == schema.canonical
        assert FORMAT.differences(again, schema) == []
        normalized = FORMAT.parse(schema.normalized(), references)
        assert normalized.normalized() == schema.normalized()
        assert FORMAT.differences(normalized, schema) == []
        described = FORMAT.parse(schema.formatted("serialized"), references)
        assert FORMAT.differences(described, schema) == []
        assert FORMAT.differences(schema, described) == []

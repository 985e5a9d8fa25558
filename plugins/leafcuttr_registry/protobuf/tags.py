"""What of a `.proto` text can have tags: messages and their fields, by names without the package. Tags are in
Confluent's options, `confluent.message_meta` and `confluent.field_meta`, which a text has in one of several forms:
`(confluent.field_meta).tags = "a"`, or `(confluent.field_meta) = {tags: ["a"]}`.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from leafcuttr_registry.inline_tags import FIELD, RECORD, TaggedPlace
from leafcuttr_registry.protobuf import tree

_OPTIONS: Final = {RECORD: "confluent.message_meta", FIELD: "confluent.field_meta"}
_TAGS: Final = "tags"
_META: Final = "confluent/meta.proto"


def places(body: Iterable[object], scope: str = "") -> Iterator[tuple[TaggedPlace, list[tree.Option]]]:
    """Each with the options that its tags are among."""
    for node in body:
        if isinstance(node, tree.Message):
            path = f"{scope}{node.name}"
            yield (RECORD, path), node.options
            for field in node.body:
                if isinstance(field, tree.Field):
                    yield (FIELD, f"{path}.{field.name}"), field.options
            yield from places(node.body, f"{path}.")


def tags_in(place: TaggedPlace, options: Iterable[tree.Option]) -> list[str]:
    """Those of a place, each once."""
    found: list[str] = []
    for option in options:
        if _is_meta(place, option):
            for value in _values(option):
                found += _texts(value)
    return list(dict.fromkeys(found))


def set_tags(place: TaggedPlace, options: list[tree.Option], tags: list[str]) -> None:
    """Leave a place these tags, in the form that its option has already: protoc allows one form only."""
    whole: tree.Option | None = None
    in_parts = False
    for option in [option for option in options if _is_meta(place, option)]:
        if len(option.name) > 1:
            if option.name[1].name == _TAGS:
                options.remove(option)
            else:
                in_parts = True
        elif isinstance(option.value, tree.Aggregate):
            option.value.entries = [entry for entry in option.value.entries if entry.key != _TAGS]
            whole = option
    head = tree.NamePart(_OPTIONS[place[0]], True)
    texts: list[tree.Value] = [tree.Text(tag.encode()) for tag in tags]
    if in_parts:
        options += [tree.Option((head, tree.NamePart(_TAGS, False)), text, -1) for text in texts]
        return
    if whole is None and tags:
        whole = tree.Option((head,), tree.Aggregate([]), -1)
        options.append(whole)
    if whole is not None and isinstance(whole.value, tree.Aggregate):
        if tags:
            whole.value.entries.append(tree.Entry(_TAGS, tree.Sequence(texts), -1))
        if not whole.value.entries:
            options.remove(whole)


def imports_meta(file: tree.File) -> None:
    """Import what defines the options, unless it is."""
    if all(each.name != _META for each in file.imports):
        file.imports.append(tree.Import(_META, "", -1))


def _is_meta(place: TaggedPlace, option: tree.Option) -> bool:
    head = option.name[0]
    return head.extension and head.name.lstrip(".") == _OPTIONS[place[0]]


def _values(option: tree.Option) -> Iterator[tree.Value]:
    if len(option.name) == 2 and option.name[1].name == _TAGS:
        yield option.value
    elif len(option.name) == 1 and isinstance(option.value, tree.Aggregate):
        for entry in option.value.entries:
            if entry.key == _TAGS:
                yield entry.value


def _texts(value: tree.Value) -> list[str]:
    if isinstance(value, tree.Text):
        return [value.data.decode("utf-8", "replace")]
    if isinstance(value, tree.Sequence):
        return [text for item in value.items for text in _texts(item)]
    return []

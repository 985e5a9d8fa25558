"""One text for a schema and its references: the form `resolved`.

Each referenced schema is among the definitions, under its name, and keeps an identifier to which the references lead
(Core 2020-12, 9.3).
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urldefrag, urljoin

from leafcuttr_registry.json_schema.documents import Document, Documents


def resolved(source: Any, documents: Documents) -> Any:
    """The value of the text; `source` is not changed."""
    if not isinstance(source, dict):
        return source
    identifiers = {name: _identifier(one) for one in documents.others for name in one.names}
    root = documents.root
    made = dict(_renamed(source, root.base, identifiers))
    keyword = "$defs" if root.dialect.number >= 2019 else "definitions"
    definitions = dict(made.get(keyword, {}))
    for one in documents.others:
        tree = _renamed(one.source, one.base, identifiers)
        if isinstance(tree, dict):
            tree = {one.dialect.id_keyword: _identifier(one), **tree}
            if one.dialect.number != root.dialect.number:
                tree.setdefault("$schema", one.dialect.uri)
        name = one.names[1]
        while name in definitions:
            name += "_"
        definitions[name] = tree
    if root.dialect.ref_is_alone and "$ref" in made:
        # What is beside `$ref` is ignored, definitions are found there all the same.
        return {**made, keyword: definitions}
    return {**made, keyword: definitions}


def _identifier(document: Document) -> str:
    """Its own where it has one; else the URI that its name has."""
    return document.base


def _renamed(source: Any, base: str, identifiers: dict[str, str]) -> Any:
    """A copy whose references lead to the identifiers."""
    if isinstance(source, list):
        return [_renamed(one, base, identifiers) for one in source]
    if not isinstance(source, dict):
        return source
    made = {key: _renamed(one, base, identifiers) for key, one in source.items()}
    ref = source.get("$ref")
    if isinstance(ref, str):
        uri, fragment = urldefrag(ref)
        for name in (urljoin(base, uri), uri):
            target = identifiers.get(name) if uri else None
            if target is not None and target != urljoin(base, uri):
                made["$ref"] = f"{target}#{fragment}" if "#" in ref else target
                break
    return made

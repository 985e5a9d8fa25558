"""The rules of compatibility, with an example each: the documentation is made from them, and a test runs them.

Names of what breaks are those of Java's SchemaIncompatibilityType, but READER_FIELD_AMBIGUOUS: there, that ends the
comparison with an exception.
"""

from typing import Final

from leafcuttr_sdk.schemas import SchemaRule

_PLAIN: Final = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'


def _record(*fields: str, name: str = "Order", more: str = "") -> str:
    return f'{{"type": "record", "name": "{name}",{more} "fields": [{", ".join(fields)}]}}'


def _field(name: str, type: str, more: str = "") -> str:
    return f'{{"name": "{name}", "type": {type}{more}}}'


_ID: Final = _field("id", '"long"')

RULES: Final = (
    SchemaRule(
        "NAME_MISMATCH",
        "The record, enum or fixed has another name, and the reader has no alias for the writer's. Namespaces may "
        "differ.",
        True,
        _PLAIN,
        _record(_ID, name="Purchase"),
    ),
    SchemaRule(
        "FIXED_SIZE_MISMATCH",
        "A fixed has another size.",
        True,
        '{"type": "fixed", "name": "Digest", "size": 16}',
        '{"type": "fixed", "name": "Digest", "size": 32}',
    ),
    SchemaRule(
        "MISSING_ENUM_SYMBOLS",
        "The reader's enum lacks symbols of the writer's, and has no default for them.",
        True,
        '{"type": "enum", "name": "Color", "symbols": ["RED", "GREEN"]}',
        '{"type": "enum", "name": "Color", "symbols": ["RED"]}',
    ),
    SchemaRule(
        "READER_FIELD_MISSING_DEFAULT_VALUE",
        "The reader has a field that the writer does not have, and no default for it.",
        True,
        _PLAIN,
        _record(_ID, _field("note", '"string"')),
    ),
    SchemaRule(
        "TYPE_MISMATCH",
        "The reader's type is another one, to which the writer's is not promoted.",
        True,
        _PLAIN,
        _record(_field("id", '"int"')),
    ),
    SchemaRule(
        "MISSING_UNION_BRANCH",
        "The reader's union has no branch that reads what the writer writes.",
        True,
        _record(_field("note", '["null", "string"]')),
        _record(_field("note", '["null", "int"]')),
    ),
    SchemaRule(
        "READER_FIELD_AMBIGUOUS",
        "By its name and its aliases, the reader's field is more than one of the writer's.",
        True,
        _record(_ID, _field("key", '"long"')),
        _record(_field("id", '"long"', ', "aliases": ["key"]')),
    ),
    SchemaRule(
        "FIELD_ADDED_WITH_DEFAULT",
        "The reader has a field that the writer does not have: its default is read.",
        False,
        _PLAIN,
        _record(_ID, _field("note", '["null", "string"]', ', "default": null')),
    ),
    SchemaRule(
        "FIELD_REMOVED",
        "What the writer has and the reader does not is skipped.",
        False,
        _record(_ID, _field("note", '"string"')),
        _PLAIN,
    ),
    SchemaRule(
        "FIELDS_REORDERED",
        "Fields are found by their names.",
        False,
        _record(_ID, _field("note", '"string"')),
        _record(_field("note", '"string"'), _ID),
    ),
    SchemaRule(
        "FIELD_RENAMED_WITH_ALIAS",
        "The reader's field has the writer's name as an alias.",
        False,
        _PLAIN,
        _record(_field("number", '"long"', ', "aliases": ["id"]')),
    ),
    SchemaRule(
        "NAME_CHANGED_WITH_ALIAS",
        "The reader's type has the writer's full name as an alias.",
        False,
        _PLAIN,
        _record(_ID, name="Purchase", more=' "aliases": ["Order"],'),
    ),
    SchemaRule(
        "NAMESPACE_CHANGED",
        "Names are compared without their namespaces.",
        False,
        _PLAIN,
        _record(_ID, more=' "namespace": "com.example",'),
    ),
    SchemaRule(
        "TYPE_PROMOTED",
        "An int is read as a long, float or double, a long as a float or double, a float as a double, and strings and "
        "bytes as one another.",
        False,
        _record(_field("id", '"int"')),
        _PLAIN,
    ),
    SchemaRule(
        "ENUM_SYMBOL_ADDED",
        "The reader's enum has symbols that the writer's does not have.",
        False,
        '{"type": "enum", "name": "Color", "symbols": ["RED"]}',
        '{"type": "enum", "name": "Color", "symbols": ["GREEN", "RED"]}',
    ),
    SchemaRule(
        "ENUM_SYMBOL_REMOVED_WITH_DEFAULT",
        "The reader's enum has a default for symbols that it does not know.",
        False,
        '{"type": "enum", "name": "Color", "symbols": ["RED", "GREEN"]}',
        '{"type": "enum", "name": "Color", "symbols": ["RED"], "default": "RED"}',
    ),
    SchemaRule(
        "UNION_WIDENED",
        "The reader's union has more branches, or the reader has a union where the writer has a type.",
        False,
        _record(_field("note", '"string"')),
        _record(_field("note", '["null", "string"]')),
    ),
    SchemaRule(
        "UNION_REPLACED",
        "The reader's type reads each branch of the writer's union.",
        False,
        _record(_field("id", '["int", "long"]')),
        _record(_field("id", '"double"')),
    ),
    SchemaRule(
        "ANNOTATION_CHANGED",
        "Documentation, order, defaults that are not needed, logical types and other properties do not count.",
        False,
        _record(_field("at", '"long"')),
        _record(_field("at", '{"type": "long", "logicalType": "timestamp-millis"}', ', "doc": "when"')),
    ),
)

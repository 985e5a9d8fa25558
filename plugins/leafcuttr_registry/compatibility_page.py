"""The page on compatibility, made of the tables of rules that the code applies:
`python -m leafcuttr_registry.compatibility_page > docs/explanation/compatibility.md`. A test compares the committed
page with it.
"""

import json
import sys
from collections.abc import Iterator
from typing import Final

from leafcuttr_registry.formats import formats
from leafcuttr_sdk.schemas import SchemaFormat, SchemaRule

_HEAD: Final = """\
# Compatibility of schemas

Data that were written by one schema are read by another: records stay for days, and producers and consumers are not
upgraded at one moment. The [registry](../how-to/registry.md) compares a new schema with earlier ones of its subject,
and refuses one that would break a reader. Which readers these are is the compatibility level.

| level | the question | who is upgraded first |
|---|---|---|
| `BACKWARD` | Can the new schema read what the latest one wrote? | consumers |
| `FORWARD` | Can the latest schema read what the new one writes? | producers |
| `FULL` | Both. | either |
| `NONE` | Nothing is asked. | both at once |

`BACKWARD_TRANSITIVE`, `FORWARD_TRANSITIVE` and `FULL_TRANSITIVE` ask about all versions, not only the latest.
`BACKWARD` is the default: consumers get the new schema first, and then read old and new records. With `FORWARD`
producers get it first, and consumers that do not have it yet read what they write.

In the tables below *old* is the schema that data were written by, and *new* the one that reads them. So a rule that
breaks refuses the change under `BACKWARD`; under `FORWARD` it refuses the change from *new* to *old*. Each rule has an
example, which a test runs. A refusal names the rule, the place in the schema, what was there and what is there now:

```sh
leafcuttr schemas check orders-value orders.avsc
leafcuttr schemas diff orders-value orders.avsc
```

This page is made of the tables that the code applies (`python -m leafcuttr_registry.compatibility_page`).
"""
_ABOUT: Final = {
    "AVRO": """\
The reader's schema is resolved against the writer's as the specification says
([Schema Resolution](https://avro.apache.org/docs/1.12.0/specification/#schema-resolution)). Fields are found by their
names or aliases. A field of the writer's that the reader does not have is skipped; one of the reader's that the writer
does not have needs a default. `int`, `long`, `float` and `double` are promoted in that order; `string` and `bytes` are
read as each other.
""",
    "JSON": """\
A schema can read what another one wrote if every value that is valid under the old one is valid under the new one. An
object is *open* if it takes members that it does not name (as it does without `additionalProperties`), *closed* if it
takes none (`"additionalProperties": false`), and *partially open* if a schema says which. A property can be added to a
closed object, and taken from an open one: in an open object old records may have anything under the new name.
""",
    "PROTOBUF": """\
Fields are found by their numbers, so a name can change where only binary data are read. A field that is not there has
its default, and one that is not known is kept aside. What breaks is a number with another meaning: another type of
another encoding, a place in another `oneof`, a label. Types of one group read each other: `int32`, `uint32`, `int64`,
`uint64` and `bool`; `sint32` and `sint64`; `string` and `bytes`; `fixed32` and `sfixed32`; `fixed64` and `sfixed64`.
""",
}


def page() -> str:
    """The whole page, as Markdown."""
    return "".join(_parts())


def _parts() -> Iterator[str]:
    yield _HEAD
    for format in formats():
        yield f"\n## {_TITLES.get(format.name, format.name)}\n\n{_ABOUT.get(format.name, '')}"
        yield from _table("Rules that break", format, breaks=True)
        yield from _table("Changes that break nothing", format, breaks=False)


_TITLES: Final = {"AVRO": "Avro", "JSON": "JSON Schema", "PROTOBUF": "Protobuf"}


def _table(title: str, format: SchemaFormat, *, breaks: bool) -> Iterator[str]:
    rules = [rule for rule in format.rules if rule.breaks is breaks]
    if rules:
        yield f"\n### {title}: {_TITLES.get(format.name, format.name)}\n\n"
        yield "| rule | what it says | old | new |\n|---|---|---|---|\n"
        yield from map(_row, rules)


def _row(rule: SchemaRule) -> str:
    return f"| `{rule.type}` | {_cell(rule.summary)} | {_code(rule.old)} | {_code(rule.new)} |\n"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _code(text: str) -> str:
    """Compact JSON, or a Protobuf text on one line."""
    try:
        shown = json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False)
    except ValueError:
        shown = " ".join(text.split())
    return f"`{_cell(shown)}`"


if __name__ == "__main__":
    sys.stdout.write(page())

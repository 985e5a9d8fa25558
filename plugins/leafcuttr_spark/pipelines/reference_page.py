"""The page of all keys of a pipeline's file, made of the tables that the reader uses:
`python -m leafcuttr_spark.pipelines.reference_page > docs/reference/spark-pipelines.md`. A test compares the committed
page with it."""

import sys
from collections.abc import Iterator
from typing import Final

from leafcuttr_spark.pipelines.reading import format_parts, pipeline_parts, source_parts
from leafcuttr_spark.pipelines.reading.kinds import Key, Kind, Part
from leafcuttr_spark.pipelines.reading.sink_parts import FILE_TARGET, PYTHON_TARGET, SINK, TOPIC_OF_SINK
from leafcuttr_spark.pipelines.reading.step_parts import OPERATIONS, WINDOW, OperationKey
from leafcuttr_spark.pipelines.reading.transform_parts import TRANSFORMS

_HEAD: Final = """\
# Pipelines on Spark: keys of a file

A pipeline is a file of YAML: sources, steps and sinks. [Write pipelines on Spark](../how-to/write-spark-pipelines.md)
shows how; `leafcuttr spark check` says what is wrong with a file, and `leafcuttr spark check --schema` prints the JSON
Schema for editors. This page is made of the tables that files are read by: `python -m
leafcuttr_spark.pipelines.reference_page`.

- Texts have variables: `${name}` of `variables`, `${env:NAME}` of the environment, `${file:PATH}` of a file. What the
  environment and files give are secrets: they are not printed. `$${` is `${` itself.
- A duration has a unit, as `500ms`, `10s`, `5m`, `1h`, `1d`.
- Expressions and types are those of Spark SQL.
- Paths begin at the folder of the file.
- Anchors, aliases and `<<` may be used. A file has at most 256 KiB.

## The file

"""
_FRAMES: Final = """
## Sources

Each key of `sources` is the name of a frame: letters, digits and `_`. The columns of a source of topics are, in this
order:

1. the key, as one column `key`;
2. the value: each field is a column, of `text` and `bytes` there is one column `value`;
3. those of `columns`;
4. `timestamp`, the record's, where there is `watermark` and no `time`.

"""
_STEPS: Final = """
## Steps

A step has one operation. Its result is a frame of its name, which steps behind it and sinks take.

"""
_WINDOWS: Final = """
### Windows

`window` of `aggregate`, `count` and `reduce`: one of these. Results have the columns `window_start` and `window_end`.

"""
_TRANSFORMS: Final = """
### Transforms

The types of `transform`, after Kafka Connect's, with Connect's names for the options. They work on columns.

"""
_SINKS: Final = """
## Sinks

All topics of a pipeline, dead letters among them, are written in one transaction for each batch.

"""


def page() -> str:
    """The whole page."""
    return "".join(
        (
            _HEAD,
            *_table(pipeline_parts.PIPELINE.keys),
            *_inner(
                *(
                    pipeline_parts.SESSION,
                    pipeline_parts.TRIGGER,
                    pipeline_parts.LIMITS,
                    pipeline_parts.STATE,
                ),
                pipeline_parts.DEAD_LETTERS,
            ),
            _FRAMES,
            *_table(source_parts.SOURCE.keys),
            *_inner(*_parts(source_parts.SOURCE)),
            _STEPS,
            *_table(pipeline_parts.STEP_KEYS),
            "\n",
            *(line for operation in OPERATIONS for line in _operation(operation)),
            _WINDOWS,
            *_table(WINDOW.keys),
            _TRANSFORMS,
            *(line for part in TRANSFORMS for line in _transform(part)),
            _SINKS,
            *_table(SINK.keys),
            *_inner(
                TOPIC_OF_SINK,
                format_parts.ENCODED_KEY,
                format_parts.ENCODED_VALUE,
                FILE_TARGET,
                PYTHON_TARGET,
            ),
        )
    )


def _parts(part: Part) -> list[Part]:
    return [key.kind for key in part.keys if isinstance(key.kind, Part)]


def _inner(*parts: Part) -> Iterator[str]:
    for part in parts:
        yield f"\n### `{part.name}`\n\n{part.what}"
        yield f" As `{part.example}`.\n\n" if part.example else "\n\n"
        yield from _table(part.keys)


def _operation(operation: OperationKey) -> Iterator[str]:
    yield f"### `{operation.name}`\n\n{operation.what}\n\n```yaml\n{operation.example}\n```\n\n"
    if isinstance(operation.kind, Part):
        yield from _table(operation.kind.keys)
        if operation.kind.short is not None:
            yield f"\nFor `{operation.kind.short_key}` alone the value may stand by itself.\n"
        yield "\n"


def _transform(part: Part) -> Iterator[str]:
    yield f"#### `{part.name}`\n\n{part.what}\n\n```yaml\n- transform: {part.example}\n```\n\n"
    if part.keys:
        yield from _table(part.keys)
        yield "\n"


def _table(keys: tuple[Key, ...]) -> Iterator[str]:
    yield "| Key | Value | Default | What it says |\n|---|---|---|---|\n"
    for key in keys:
        default = "needed" if key.required else key.default
        cells = [f"`{key.name}`", _words(key.kind), default, key.what]
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _words(kind: Kind) -> str:
    if isinstance(kind, Part):
        short = f"{kind.short.words}, or " if kind.short is not None else ""
        return f"{short}a mapping"
    return kind.words


if __name__ == "__main__":
    sys.stdout.write(page())

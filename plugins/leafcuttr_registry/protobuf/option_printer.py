"""Options and their values as canonical texts write them."""

from collections.abc import Iterable, Sequence

from leafcuttr_registry.protobuf import tree

_ESCAPES = str.maketrans(
    {
        "\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v", "\0": r"\000",
        "\\": r"\\", "'": r"\'", '"': r"\"",
    }
)  # fmt: skip


def quoted(data: bytes) -> str:
    try:
        return f'"{data.decode().translate(_ESCAPES)}"'
    except UnicodeDecodeError:
        return (
            '"'
            + "".join(chr(byte).translate(_ESCAPES) if byte < 0x80 else f"\\{byte:03o}" for byte in data)
            + '"'
        )


def indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def option_lines(option: tree.Option) -> list[str]:
    """`name = value`, without `option` and semicolon."""
    name = ".".join(f"({part.name})" if part.extension else part.name for part in option.name)
    return _after(f"{name} = ", value_lines(option.value))


def statement_lines(option: tree.Option) -> list[str]:
    lines = option_lines(option)
    lines[0] = f"option {lines[0]}"
    lines[-1] += ";"
    return lines


def _after(prefix: str, lines: list[str]) -> list[str]:
    lines[0] = prefix + lines[0]
    return lines


def bracketed_lines(before: str, options: Sequence[tree.Option], after: str) -> list[str]:
    """`before [options]after`; several options have a line each."""
    if not options:
        return [before + after]
    if len(options) == 1:
        lines = option_lines(options[0])
        lines[0] = f"{before} [{lines[0]}"
        lines[-1] += f"]{after}"
        return lines
    return [f"{before} [", *_items([option_lines(option) for option in options]), f"]{after}"]


def _items(items: list[list[str]]) -> list[str]:
    lines: list[str] = []
    for index, item in enumerate(items):
        if index < len(items) - 1:
            item[-1] += ","
        lines.extend(indented(item))
    return lines


def value_lines(value: tree.Value) -> list[str]:
    match value:
        case tree.Text():
            return [quoted(value.data)]
        case tree.Number():
            return [value.text]
        case tree.Word():
            return [value.name]
        case tree.Sequence():
            if not value.items:
                return ["[]"]
            return ["[", *_items([value_lines(item) for item in value.items]), "]"]
        case tree.Aggregate():
            return [
                "{",
                *_items([_after(f"{key}: ", value_lines(item)) for key, item in grouped(value)]),
                "}",
            ]


def grouped(aggregate: tree.Aggregate) -> list[tuple[str, tree.Value]]:
    """Entries of one key are one list, at the place of the first."""
    values: dict[str, list[tree.Value]] = {}
    lists: set[str] = set()
    for entry in aggregate.entries:
        each = values.setdefault(entry.key, [])
        if isinstance(entry.value, tree.Sequence):
            lists.add(entry.key)
            each.extend(entry.value.items)
        else:
            each.append(entry.value)
    return [
        (key, each[0] if len(each) == 1 and key not in lists else tree.Sequence(each))
        for key, each in values.items()
    ]

"""The text of a schema in canonical form, as Confluent's registry writes it: comments and layout are gone, names and
values stay as they were written. Parts come by kind: reserved, options, fields, oneofs, groups, ranges, extensions,
nested messages, nested enums; two spaces a level; an empty line between kinds.
"""

from collections.abc import Iterable, Sequence

from leafcuttr_registry.protobuf import tree
from leafcuttr_registry.protobuf.option_printer import bracketed_lines, indented, quoted, statement_lines

CONFLUENT = "confluent."


class Printer:
    """Prints trees. `normalize.py` makes other trees for normalized texts."""

    def __init__(self, *, ignore_extensions: bool = False) -> None:
        self._ignore = ignore_extensions

    def file(self, file: tree.File) -> str:
        lines: list[str] = []
        if file.edition is not None:
            lines.append(f'edition = "{file.edition}";')
        elif file.syntax is not None:
            lines.append(f'syntax = "{file.syntax}";')
        if file.package is not None:
            lines.append(f"package {file.package};")
        if file.imports:
            lines.append("")
            for kind in ("", "weak", "option", "public"):
                words = f"import {kind}".rstrip()
                lines.extend(
                    f"{words} {quoted(each.name.encode())};" for each in file.imports if each.kind == kind
                )
        self._section(lines, self._options(file.options))
        types = [*self._messages(file.body), *self._enums(file.body)]
        self._section(lines, types)
        if not self._ignore:
            self._section(lines, self._extends(file.body))
        services: list[str] = []
        for node in file.body:
            if isinstance(node, tree.RpcService):
                services.extend(self._service(node))
        self._section(lines, services)
        return "".join(f"{line}\n" for line in lines)

    def _section(self, lines: list[str], part: Sequence[str]) -> None:
        if part:
            lines.append("")
            lines.extend(part)

    def _shown(self, options: Iterable[tree.Option]) -> list[tree.Option]:
        if not self._ignore:
            return list(options)
        return [
            option
            for option in options
            if not option.name[0].extension or option.name[0].name.lstrip(".").startswith(CONFLUENT)
        ]

    def _options(self, options: Iterable[tree.Option]) -> list[str]:
        return [line for option in self._shown(options) for line in statement_lines(option)]

    def _messages(self, body: Iterable[object]) -> list[str]:
        return [line for node in body if isinstance(node, tree.Message) for line in self.message(node)]

    def _enums(self, body: Iterable[object]) -> list[str]:
        return [line for node in body if isinstance(node, tree.Enum) for line in self._enum(node)]

    def _extends(self, body: Iterable[object]) -> list[str]:
        lines: list[str] = []
        for node in body:
            if isinstance(node, tree.Extend):
                fields = [line for field in node.fields for line in self._field(field)]
                lines.extend([f"extend {node.extendee} {{", *indented(fields), "}"])
        return lines

    def message(self, node: tree.Message) -> list[str]:
        visibility = f"{node.visibility} " if node.visibility else ""
        return self._block(f"{visibility}message {node.name} {{", node)

    def _block(self, head: str, node: tree.Message) -> list[str]:
        fields = [each for each in node.body if isinstance(each, tree.Field)]
        sections = [
            self._reserved(node.reserved, tree.MAX_FIELD_NUMBER),
            self._options(node.options),
            self._fields(each for each in fields if each.oneof is None),
            [line for oneof in node.oneofs for line in self._oneof(oneof)],
            self._groups(each for each in fields if each.oneof is None),
        ]
        if not self._ignore:
            sections.append([line for each in node.extensions for line in self._ranges(each)])
            sections.append(self._extends(node.body))
        sections.append([*self._messages(node.body), *self._enums(node.body)])
        lines: list[str] = []
        for section in sections:
            if section:
                if lines:
                    lines.append("")
                lines.extend(indented(section))
        if not lines:
            return [f"{head}}}"]
        return [head, *lines, "}"]

    def _fields(self, fields: Iterable[tree.Field]) -> list[str]:
        return [
            line
            for field in fields
            if not isinstance(field.type, tree.Message)
            for line in self._field(field)
        ]

    def _groups(self, fields: Iterable[tree.Field]) -> list[str]:
        return [
            line for field in fields if isinstance(field.type, tree.Message) for line in self._field(field)
        ]

    def _field(self, field: tree.Field) -> list[str]:
        label = f"{field.label} " if field.label is not None else ""
        options = self._shown(field.options)
        if field.default is not None:
            options.append(tree.Option((tree.NamePart("default", False),), field.default, -1))
        if field.json_name is not None:
            name = tree.Text(field.json_name.encode())
            options.append(tree.Option((tree.NamePart("json_name", False),), name, -1))
        kind = field.type
        if isinstance(kind, tree.Message):
            *before, head = bracketed_lines(f"{label}group {kind.name} = {field.number}", options, " {")
            return [*before, *self._block(head, kind)]
        if isinstance(kind, tree.MapType):
            kind = f"map<{kind.key}, {kind.value}>"
        return bracketed_lines(f"{label}{kind} {field.name} = {field.number}", options, ";")

    def _oneof(self, oneof: tree.Oneof) -> list[str]:
        lines: list[str] = []
        for section in (self._options(oneof.options), self._fields(oneof.fields), self._groups(oneof.fields)):
            if section:
                if lines:
                    lines.append("")
                lines.extend(indented(section))
        return [f"oneof {oneof.name} {{", *lines, "}"]

    def _ranges(self, extensions: tree.Extensions) -> list[str]:
        ranges = ", ".join(_range(each, tree.MAX_FIELD_NUMBER) for each in extensions.ranges)
        return bracketed_lines(f"extensions {ranges}", self._shown(extensions.options), ";")

    def _reserved(self, reserved: Iterable[tree.Reserved], most: int) -> list[str]:
        lines: list[str] = []
        for each in reserved:
            parts = [_range(one, most) for one in each.ranges]
            parts.extend(quoted(name.encode()) if each.quoted else name for name, _ in each.names)
            lines.append(f"reserved {', '.join(parts)};")
        return lines

    def _enum(self, node: tree.Enum) -> list[str]:
        visibility = f"{node.visibility} " if node.visibility else ""
        lines = self._reserved(node.reserved, tree.MAX_INT32)
        lines.extend(self._options(node.options))
        for value in node.values:
            lines.extend(bracketed_lines(f"{value.name} = {value.number}", self._shown(value.options), ";"))
        return [f"{visibility}enum {node.name} {{", *indented(lines), "}"]

    def _service(self, node: tree.RpcService) -> list[str]:
        lines = self._options(node.options)
        methods: list[str] = []
        for method in node.methods:
            input_ = f"stream {method.input}" if method.client_streaming else method.input
            output = f"stream {method.output}" if method.server_streaming else method.output
            head = f"rpc {method.name} ({input_}) returns ({output})"
            options = self._options(method.options)
            if options:
                methods.extend([f"{head} {{", *indented(options), "};"])
            else:
                methods.append(f"{head};")
        if lines and methods:
            lines.append("")
            lines = [*indented(lines[:-1]), "", *indented(methods)]
        else:
            lines = indented([*lines, *methods])
        if not lines:
            return [f"service {node.name} {{}}"]
        return [f"service {node.name} {{", *lines, "}"]


def _range(each: tree.Range, most: int) -> str:
    if each.start == each.end:
        return str(each.start)
    return f"{each.start} to {'max' if each.to_max or each.end == most else each.end}"

"""From the text of a `.proto` file to its tree: the statements of a file, of enums and of services.

Spec: https://protobuf.dev/reference/protobuf/proto2-spec/, proto3-spec/, edition-2023-spec/ and edition-2024-spec/;
where they are silent, what protoc does. Messages are in `messages.py`, options in `option_parser.py`.
"""

from typing import Final

from leafcuttr_registry.budget import Budget
from leafcuttr_registry.protobuf.cursor import Cursor
from leafcuttr_registry.protobuf.lexer import STRING
from leafcuttr_registry.protobuf.messages import MessageParser
from leafcuttr_registry.protobuf.option_parser import option_statement
from leafcuttr_registry.protobuf.tree import File, Import, ImportKind, Method, RpcService

EDITIONS: Final = ("2023", "2024")
KINDS: Final[dict[str, ImportKind]] = {"": "", "public": "public", "weak": "weak", "option": "option"}


def parse_file(text: str, budget: Budget) -> File:
    """Raises SchemaError with the line of what is wrong."""
    cursor = Cursor(text, budget)
    file = File()
    _first_statement(cursor, file)
    messages = MessageParser(cursor, file)
    while cursor.token:
        _statement(cursor, file, messages)
    return file


def _first_statement(cursor: Cursor, file: File) -> None:
    if cursor.token == "syntax":
        cursor.take()
        cursor.expect("=")
        at = cursor.at
        syntax = cursor.utf8("the syntax")
        if syntax not in ("proto2", "proto3"):
            raise cursor.fail(f"the syntax {syntax[:40]!r}; it is proto2 or proto3", at)
        file.syntax = syntax
        cursor.expect(";")
    elif cursor.token == "edition":
        cursor.take()
        cursor.expect("=")
        at = cursor.at
        edition = cursor.utf8("the edition")
        if edition not in EDITIONS:
            raise cursor.fail(f"the edition {edition[:40]!r}; it is one of {', '.join(EDITIONS)}", at)
        file.edition = edition
        cursor.expect(";")


def _statement(cursor: Cursor, file: File, messages: MessageParser) -> None:
    at = cursor.at
    visibility = messages.visibility()
    word = cursor.token
    if word == ";":
        cursor.take()
    elif word == "message":
        cursor.take()
        file.body.append(messages.message(visibility))
    elif word == "enum":
        cursor.take()
        file.body.append(messages.enum(visibility))
    elif word == "extend":
        cursor.take()
        file.body.append(messages.extend(at))
    elif word == "service":
        cursor.take()
        file.body.append(_service(cursor))
    elif word == "import":
        cursor.take()
        file.imports.append(_import(cursor, file, at))
    elif word == "option":
        cursor.take()
        file.options.append(option_statement(cursor))
    elif word == "package":
        cursor.take()
        if file.package is not None:
            raise cursor.fail("a second package; a file has one at most", at)
        file.package_at = cursor.at
        file.package = cursor.full_name("the name of the package")
        cursor.expect(";")
    else:
        raise cursor.expected("a statement such as message, enum, import or option")


def _import(cursor: Cursor, file: File, at: int) -> Import:
    kind = cursor.token
    if kind in ("public", "weak", "option"):
        if kind == "option" and file.edition in (None, "2023"):
            raise cursor.fail("import option is of edition 2024 and later ones")
        if kind == "weak" and file.edition not in (None, "2023"):
            raise cursor.fail("weak imports are not of edition 2024 and later ones; import option is")
        cursor.take()
    elif cursor.kind != STRING:
        raise cursor.expected("the name of a file, in quotes")
    else:
        kind = ""
    name = cursor.utf8("the name of a file")
    cursor.expect(";")
    return Import(name, KINDS[kind], at)


def _service(cursor: Cursor) -> RpcService:
    at = cursor.at
    service = RpcService(cursor.identifier("the name of the service"), at)
    cursor.expect("{")
    while not cursor.accept("}"):
        if cursor.accept(";"):
            continue
        if cursor.accept("option"):
            service.options.append(option_statement(cursor))
        elif cursor.accept("rpc"):
            service.methods.append(_method(cursor))
        else:
            raise cursor.expected("rpc, option or }")
    return service


def _method(cursor: Cursor) -> Method:
    at = cursor.at
    name = cursor.identifier("the name of the method")
    client, input_ = _type_of(cursor)
    cursor.expect("returns")
    server, output = _type_of(cursor)
    method = Method(name, at, input_, output, client, server)
    if cursor.accept("{"):
        method.braces = True
        while not cursor.accept("}"):
            if cursor.accept(";"):
                continue
            if not cursor.accept("option"):
                raise cursor.expected("option or }")
            method.options.append(option_statement(cursor))
    else:
        cursor.expect(";")
    return method


def _type_of(cursor: Cursor) -> tuple[bool, str]:
    cursor.expect("(")
    stream = cursor.accept("stream")
    name = cursor.type_name("the name of a message")
    cursor.expect(")")
    return stream, name

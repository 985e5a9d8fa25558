"""The check of admin routes passes what keeps its contract, and names what is wrong with what does not."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncGenerator
from typing import Any

import pytest
import trio
import trio.testing

from leafcuttr_sdk import AdminRoute, Request, Response
from leafcuttr_sdk.testing import ContractError, check_admin_route
from leafcuttr_sdk.testing.route_checks import admin_route_report


async def shown(request: Request) -> Response:
    assert request.route.startswith("/plugins/test/") and request.path.startswith("/plugins/test/")
    return Response(repr(dict(request.parameters)).encode())


async def found(request: Request) -> Response:
    known = request.parameters.get("key", "0") == "0"
    return Response(b"{}", status=200 if known else 404)


async def streamed(_: Request) -> Response:
    return Response(_without_end(b"x"), "text/plain")


async def _without_end(piece: Any) -> AsyncGenerator[Any, None]:
    while True:
        yield piece


async def _breaks_off() -> AsyncGenerator[bytes, None]:
    yield b"some"
    raise OSError("no more")


@pytest.mark.parametrize("handler", [shown, found, streamed])
@pytest.mark.parametrize("path", ["/", "/keys", "/keys/{key}", "/{kind}/{key}", "/files/{rest*}", "/a/"])
def test_a_good_route_passes(handler: Any, path: str) -> None:
    check_admin_route(AdminRoute(path, handler, "what there is"))


async def removed(request: Request) -> Response:
    assert request.method in ("GET", "HEAD", "DELETE")
    return Response(b"{}")


def test_a_good_route_for_delete_passes() -> None:
    for methods in (("GET", "DELETE"), ("DELETE",)):
        check_admin_route(AdminRoute("/keys/{key}", removed, "what may go", methods))


async def no_number(request: Request) -> Response:
    if request.method == "DELETE":
        int(request.parameters["key"])
    return Response(b"{}")


@pytest.mark.parametrize("methods", [("GET", "DELETE"), ("DELETE",)])
def test_what_delete_does_with_odd_parameters_is_seen(methods: tuple[str, ...]) -> None:
    with pytest.raises(ContractError, match=r"the handler raised ValueError.*by DELETE"):
        check_admin_route(AdminRoute("/keys/{key}", no_number, "what may go", methods))


@pytest.mark.parametrize("methods", [(), ("POST",), "GET", ["GET"]])
def test_odd_methods(methods: Any) -> None:
    with pytest.raises(ContractError, match="allowed is a tuple of GET and DELETE"):
        check_admin_route(AdminRoute("/keys", removed, "what may go", methods))


async def numbers(request: Request) -> Response:
    return Response(b"%d" % int(request.parameters["key"]))


async def exits(_: Request) -> Response:
    sys.exit(3)


async def no_response(_: Request) -> Any:
    return "text"


async def odd_status(_: Request) -> Response:
    return Response(b"", status=999)


async def odd_body(_: Request) -> Response:
    return Response("text")  # type: ignore[arg-type]


async def odd_piece(_: Request) -> Response:
    return Response(_without_end("text"))


async def broken_body(_: Request) -> Response:
    return Response(_breaks_off())


async def odd_header(_: Request) -> Response:
    return Response(b"", headers=(("x-name", "größe"),))


async def line_end(request: Request) -> Response:
    return Response(b"", headers=(("x-name", "a\r\nb"),))


async def fails_on_odd(request: Request) -> Response:
    return Response(b"", status=200 if request.parameters["key"].isalnum() else 503)


async def not_head(request: Request) -> Response:
    return Response(b"", status=200 if request.method == "GET" else 405)


async def slow(_: Request) -> Response:
    began = time.thread_time()
    while time.thread_time() - began < 0.15:
        pass
    return Response(b"")


def plain(_: Request) -> Any:
    return Response(b"")


@pytest.mark.parametrize(
    ("handler", "path", "check", "says"),
    [
        (shown, "keys", "path", "'keys' is no path"),
        (shown, "/keys/a{key}", "path", "'a{key}' is no parameter"),
        (numbers, "/keys/{key}", "any parameter", "the handler raised ValueError: invalid literal"),
        (exits, "/keys", "answers", "the handler raised SystemExit: 3 for GET"),
        (no_response, "/keys", "answers", "the handler returned a str, not a Response"),
        (odd_status, "/keys", "answers", "its status is 999"),
        (odd_body, "/keys", "answers", "its body is a str, neither bytes nor an async generator"),
        (odd_piece, "/keys", "answers", "a piece of its body is a str, not bytes"),
        (broken_body, "/keys", "answers", "its body raised OSError: no more"),
        (odd_header, "/keys", "answers", "its header 'x-name' is 'größe', which cannot be sent"),
        (line_end, "/keys", "answers", "which cannot be sent"),
        (fails_on_odd, "/keys/{key}", "any parameter", "the handler answers 503: 404 or 400 is for"),
        (not_head, "/keys", "HEAD", "GET is answered 200 application/json, HEAD 405"),
        (slow, "/keys", "does not block", "it computes for long on the loop"),
        (plain, "/keys", "answers", "the handler raised TypeError"),
    ],
)
def test_a_bad_one_is_named(handler: Any, path: str, check: str, says: str) -> None:
    with pytest.raises(ContractError) as caught:
        check_admin_route(AdminRoute(path, handler, "what there is"))
    problems = {one.name: one.problems for one in caught.value.report.checks if one.problems}
    assert any(says in problem for problem in problems.get(check, ())), str(caught.value)


def test_its_summary_is_one_line() -> None:
    with pytest.raises(ContractError, match="its summary is"):
        check_admin_route(AdminRoute("/keys", shown, "two\nlines"))


async def test_one_that_never_answers_is_named_once(autojump_clock: trio.testing.MockClock) -> None:
    async def waits(_: Request) -> Response:
        await trio.sleep_forever()

    report = await admin_route_report(AdminRoute("/keys/{key}", waits, "what there is"))
    assert report.problems == [
        "it took longer than 30 s for 'orders'",
        "it took longer than 30 s for 'orders', by HEAD",
    ]
    assert trio.current_time() >= 60

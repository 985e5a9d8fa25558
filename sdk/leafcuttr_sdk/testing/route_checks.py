"""Conformance of admin routes: `leafcuttr_sdk.admin.AdminRoute` says what they promise.

The handler is called as the admin port calls it, also with what clients may write for the parameters of its path.
"""

import inspect
import time
from collections.abc import AsyncGenerator
from http import HTTPStatus
from itertools import permutations
from typing import Any, Final, cast

from leafcuttr_sdk._described import kind_of
from leafcuttr_sdk._paths import PatternPart, parts_of_pattern
from leafcuttr_sdk.admin import METHODS, AdminRoute, Request, Response
from leafcuttr_sdk.testing import watch
from leafcuttr_sdk.testing.report import Notes, Report, told

PROMISES: Final = {
    "path": "its path begins with a slash, its parameters are names in braces, and its summary is one line",
    "methods": "its methods are a tuple of GET and DELETE",
    "answers": "its handler is an async function that returns a Response which can be sent, and raises nothing",
    "any parameter": "whatever clients write for its parameters, the answer is no failure (status 500 and above)",
    "HEAD": "HEAD is answered as GET is",
    "does not block": "it leaves the loop to others: long work is done in a thread",
}
_VALUES: Final = (
    "orders",
    "0",
    "-1",
    "1" * 400,
    "a b",
    "a/b",
    "a/../b",
    "café 🌡",
    "%41",
    "{}",
    "'\"\\;--",
    "<script>",
    "x" * 3000,
)
_METHODS: Final = [each for count in (1, 2) for each in permutations(METHODS, count)]
_PIECES: Final = 100
ANSWER_S: Final = 30.0
"""How long the broker lets a handler take."""
_STATUSES: Final = frozenset(int(status) for status in HTTPStatus if status >= HTTPStatus.OK)


def check_admin_route(route: AdminRoute) -> None:
    """Check an admin route on a loop of trio. Raises ContractError with all that is wrong."""
    import trio

    trio.run(admin_route_report, route).raise_problems()


async def admin_route_report(route: AdminRoute, prefix: str = "/plugins/test") -> Report:
    """The report that `check_admin_route` would raise."""
    notes = Notes("admin route", str(route.path), PROMISES)
    if not route.summary or len(route.summary.splitlines()) != 1:
        notes.add("path", f"its summary is {route.summary!r}: a few words on one line")
    try:
        parts = parts_of_pattern(route.path.rstrip("/") or "/")
    except ValueError as error:
        notes.add("path", str(error))
        return notes.report(["path"])
    methods = route.methods
    if methods not in _METHODS:
        notes.add("methods", f"they are {methods!r:.100}: allowed is a tuple of {' and '.join(METHODS)}")
        return notes.report(["path", "methods"])
    trial = _Trial(route, notes, prefix)
    named = [part for part in parts if part.kind != "literal"]
    for at, value in enumerate(_VALUES if named else _VALUES[:1]):
        parameters = {part.text: value for part in named}
        shown = f"for {value[:40]!r}" if named else "for GET"
        for method in methods:
            if method != "GET":
                check = "any parameter" if at else "answers"
                await trial.answer(method, parts, parameters, check, f"{shown}, by {method}")
        if trial.late:
            break
        if "GET" not in methods:
            continue
        got = await trial.answer("GET", parts, parameters, "any parameter" if at else "answers", shown)
        head = await trial.answer("HEAD", parts, parameters, "HEAD", f"{shown}, by HEAD")
        if (
            got is not None
            and head is not None
            and (got.status, got.content_type)
            != (
                head.status,
                head.content_type,
            )
        ):
            notes.add(
                "HEAD",
                f"GET is answered {got.status} {got.content_type}, HEAD {head.status} {head.content_type}: "
                "the broker leaves out the body by itself",
            )
    return notes.report()


class _Trial:
    def __init__(self, route: AdminRoute, notes: Notes, prefix: str) -> None:
        self._route = route
        self._notes = notes
        self._prefix = prefix
        self.late = False

    async def answer(
        self,
        method: str,
        parts: tuple[PatternPart, ...],
        parameters: dict[str, str],
        check: str,
        shown: str,
    ) -> Response | None:
        """What the handler returned, if that can be sent."""
        import trio

        path = self._prefix + "".join(f"/{parameters.get(part.text, part.text)}" for part in parts)
        request = Request(method, path, {}, {}, parameters, self._prefix + self._route.path)
        response: object = None
        worked = time.thread_time()
        with trio.move_on_after(ANSWER_S) as scope:
            try:
                response = await self._route.handler(request)
            except trio.Cancelled:
                raise
            except BaseException as error:
                if watch.of_the_person(error):
                    raise
                self._notes.add(check, f"the handler raised {told(error)} {shown}")
                return None
        if scope.cancelled_caught:
            self.late = True
            self._notes.add(check, f"it took longer than {ANSWER_S:g} s {shown}")
            return None
        if time.thread_time() - worked > watch.PATIENCE_S:
            slow = "it computes for long on the loop: use trio.to_thread.run_sync for what takes time"
            self._notes.add("does not block", slow)
        wrong, sent = _why_not_sent(response), cast("Response", response)
        if wrong is None:
            wrong = await _why_not_read(sent)
            if wrong is None and sent.status >= HTTPStatus.INTERNAL_SERVER_ERROR and parameters:
                wrong = f"the handler answers {sent.status}: 404 or 400 is for what a client has written"
        if wrong is not None:
            self._notes.add(check, f"{wrong} ({shown})")
            return None
        return sent


def _why_not_sent(response: object) -> str | None:
    if not isinstance(response, Response):
        return f"the handler returned {kind_of(response)}, not a Response"
    body, content_type, status, headers = cast("tuple[Any, Any, Any, Any]", response)
    if not isinstance(body, bytes) and not inspect.isasyncgen(body):
        return f"its body is {kind_of(body)}, neither bytes nor an async generator"
    if status not in _STATUSES:
        return f"its status is {status!r}, which HTTP does not have"
    for name, value in (("content-type", content_type), *headers):
        if not isinstance(name, str) or not isinstance(value, str):
            return f"its header {name!r} is {value!r}: both are text"
        if not f"{name}{value}".isascii() or any(char < " " for char in name + value):
            return f"its header {name!r} is {value!r}, which cannot be sent: ASCII without control characters"
    return None


async def _why_not_read(response: Response) -> str | None:
    """Of a body in pieces; no more than a hundred of them are made."""
    body: Any = response.body
    if isinstance(body, bytes):
        return None
    pieces = cast("AsyncGenerator[object, None]", body)
    try:
        made = 0
        async for piece in pieces:
            if not isinstance(piece, bytes):
                return f"a piece of its body is {kind_of(piece)}, not bytes"
            made += 1
            if made == _PIECES:
                break
    except Exception as error:
        return f"its body raised {told(error)}"
    finally:
        await pieces.aclose()
    return None

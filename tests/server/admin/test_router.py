"""Paths, and the targets of requests."""

from __future__ import annotations

import pytest

from leafcuttr.server.admin.router import Request, Response, Router, parse_target


def test_a_target_with_very_many_fields_is_refused() -> None:
    with pytest.raises(ValueError, match="fields"):
        parse_target("/x?" + "a=1&" * 2000)


@pytest.mark.parametrize(
    ("path", "route", "parameters"),
    [
        ("/x/all", "/x/all", {}),
        ("/x/all/", "/x/all", {}),
        ("/x/one", "/x/{name}", {"name": "one"}),
        ("/x/one/", "/x/{name}", {"name": "one"}),
        ("/x/one/two/", "/x/{rest*}", {"rest": "one/two/"}),
        ("/x/", "/x", {}),
    ],
)
async def test_a_slash_at_the_end_leads_to_no_other_route(
    path: str, route: str, parameters: dict[str, str]
) -> None:
    async def show(request: Request) -> Response:
        assert request.parameters == parameters
        return Response(str(request.route).encode())

    router = Router()
    for pattern in ("/x", "/x/all", "/x/{name}", "/x/{rest*}"):
        router.add(pattern, show, "")
    answer = await router.answer(Request("GET", path, {}, {}))
    assert answer.body == route.encode()

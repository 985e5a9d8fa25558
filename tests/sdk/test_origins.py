"""Whose pages may use a service from a browser."""

from __future__ import annotations

import pytest

from leafcuttr_sdk import Setting, websocket_settings
from leafcuttr_sdk._origins import Origins, why_no_origin

HOST = "plant.example:8083"


@pytest.mark.parametrize(
    ("origin", "host", "names", "exactly", "any_port"),
    [
        ("http://plant.example:8083", HOST, (), True, True),
        ("HTTPS://Plant.Example:8083", HOST, (), True, True),
        ("http://plant.example:3000", HOST, (), False, True),
        ("http://plant.example", HOST, (), False, True),
        ("https://plant.example", "plant.example:443", (), True, True),
        ("http://plant.example", "plant.example:443", (), False, True),
        ("http://[::1]:3000", "[::1]:8083", (), False, True),
        ("http://[::2]:8083", "[::1]:8083", (), False, False),
        ("http://plant.example.evil:8083", HOST, (), False, False),
        ("http://evil.plant.example:8083", HOST, (), False, False),
        ("http://plant.example@evil:8083", HOST, (), False, False),
        ("http://plant.example:8083@evil", HOST, (), False, False),
        ("http://plant.example:80/evil", HOST, (), False, False),
        ("http://plant.example:", HOST, (), False, False),
        ("plant.example:8083", HOST, (), False, False),
        ("http://", "", (), False, False),
        ("file://", "", (), False, False),
        ("null", "null", (), False, False),
        ("null", HOST, ("null",), True, True),
        ("file://", HOST, ("file://",), True, True),
        ("https://a.example", HOST, ("https://A.example/",), True, True),
        ("https://a.example", HOST, ("https://a.example:443",), True, True),
        ("https://a.example:443", HOST, ("https://a.example",), True, True),
        ("https://a.example:80", HOST, ("https://a.example",), False, False),
        ("http://a.example", HOST, ("https://a.example",), False, False),
        ("https://a.example.evil", HOST, ("", "https://a.example"), False, False),
        ("https://b.example", HOST, ("*",), True, True),
        ("", HOST, (), False, False),
    ],
)
def test_whose_pages_may(
    origin: str, host: str, names: tuple[str, ...], exactly: bool, any_port: bool
) -> None:
    assert Origins(names).allows(origin, host) is exactly
    assert Origins(names, any_port=True).allows(origin, host) is any_port


def test_one_line_says_who_was_refused_and_who_is_not() -> None:
    said = Origins(("https://a.example", "https://b.example/")).refusal(
        "https://evil", HOST, "x.allowed.origins"
    )
    assert said == (
        "pages of 'https://evil' may not connect here; allowed are those of 'plant.example' at any port, "
        "https://a.example, https://b.example; x.allowed.origins names others"
    )
    odd = "\x9b2J" + "a" * 10_000
    said = Origins(f"http://{number}" for number in range(12)).refusal(odd, odd, "")
    assert said.isascii() and said.isprintable() and len(said) < 1000
    assert said.endswith("http://9 and 2 more")


@pytest.mark.parametrize(
    ("name", "fine"),
    [
        ("https://a.example", True),
        ("http://10.0.0.7:3000/", True),
        ("http://[::1]:3000", True),
        ("app://dashboard", True),
        ("*", True),
        ("null", True),
        ("file://", True),
        ("a.example", False),
        ("https://", False),
        ("://a.example", False),
        ("https://*.example", False),
        ("https://a.example/page", False),
        ("https://a.example https://b.example", False),
        ("https://user@a.example", False),
    ],
)
def test_what_a_setting_may_name(name: str, fine: bool) -> None:
    why = why_no_origin(name)
    if fine:
        assert why is None
    else:
        assert why is not None and repr(name) in why and "https://a.example" in why
    setting: Setting = {each.name: each for each in websocket_settings("x", -1)}["x.allowed.origins"]
    assert setting.check is not None and setting.check(("https://fine.example", "", name)) == why

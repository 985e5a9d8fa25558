"""The settings of an HTTP service, and their values in the units of the code."""

from __future__ import annotations

import subprocess
import sys

from leafcuttr_sdk.testing import fixed_settings
from leafcuttr_sdk.web.settings import read_limits, web_settings


def test_all_are_below_the_prefix() -> None:
    names = [each.name for each in web_settings("lc.plugin.x", 8081)]
    assert len(names) == len(set(names)) and all(name.startswith("lc.plugin.x.") for name in names)
    assert {"lc.plugin.x.port", "lc.plugin.x.auth", "lc.plugin.x.ssl.client.auth"} <= set(names)
    assert {"lc.plugin.x.unix.path", "lc.plugin.x.send.timeout.ms"} <= set(names)
    defaults = {each.name: each.default for each in web_settings("lc.plugin.x", 8081)}
    assert defaults["lc.plugin.x.max.connections"] == 1000
    assert defaults["lc.plugin.x.idle.timeout.ms"] == 60_000


def test_the_values() -> None:
    given = {
        "max.connections": 7,
        "max.request.bytes": 2048,
        "max.buffered.bytes": 4096,
        "request.timeout.ms": 1500,
        "idle.timeout.ms": 250,
        "cors.allowed.origins": ("https://A.example/", "", "*"),
    }
    settings = fixed_settings(
        web_settings("lc.x", 0), {f"lc.x.{name}": value for name, value in given.items()}
    )
    limits = read_limits(settings, "lc.x")
    assert limits == ("lc.x", 2048, 4096, 1.5, frozenset({"https://a.example", "*"}))


def test_they_need_no_package_of_the_extra() -> None:
    program = (
        "import sys; from leafcuttr_sdk.web import ApiError, openapi, web_settings; list(web_settings('lc.x', 0));"
        "print([name for name in ('hypercorn', 'quart', 'h11', 'h2', 'trio') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == "[]\n"

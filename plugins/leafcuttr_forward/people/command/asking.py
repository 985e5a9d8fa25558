"""GET at the address of what runs flows."""

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote

from leafcuttr_sdk.cli import admin_server_option, bootstrap_server_options, command_context, json_option
from leafcuttr_sdk.errors import PluginError

if TYPE_CHECKING:
    import click

F = TypeVar("F", bound=Callable[..., Any])
_PATH: Final = "/plugins/forward/flows"
_MOST: Final = 64 << 20
_COMPLETION_S: Final = 1.0


def shows(function: F) -> F:
    """The options of a command that shows flows."""
    return bootstrap_server_options(admin_server_option(json_option(function)))


def all_flows() -> list[dict[str, Any]]:
    """A row for each. Raises PluginError with a line for a person."""
    found: list[dict[str, Any]] = _get(_PATH)
    return found


def one_flow(name: str) -> dict[str, Any]:
    """All that is known of it. Raises PluginError."""
    found: dict[str, Any] = _get(f"{_PATH}/{quote(name, safe='')}")
    return found


def complete_flows(ctx: "click.Context", param: "click.Parameter", incomplete: str) -> list[str]:
    """Names of flows for the shell, from the address of the environment; nothing where none answers in a second."""
    import os

    address = ctx.params.get("leafcuttr_admin_server") or os.environ.get("LEAFCUTTR_ADMIN_SERVER")
    try:
        url = f"http://{address}{_PATH}"
        opening = partial(urllib.request.urlopen, url, timeout=_COMPLETION_S)
        rows = _fetched(str(address), opening) if address else []
        return [row["flow"] for row in rows if row["flow"].startswith(incomplete)]
    except (PluginError, LookupError, TypeError):
        return []


def _get(path: str) -> Any:
    context = command_context()
    return _fetched(context.admin_address, partial(context.open_admin, path))


def _fetched(address: str, opening: Callable[[], Any]) -> Any:
    try:
        with opening() as answer:
            return json.loads(answer.read(_MOST))
    except urllib.error.HTTPError as error:
        raise PluginError(_told(error)) from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise PluginError(f"nothing that runs flows answers at {address}: {reason}") from None


def _told(error: urllib.error.HTTPError) -> str:
    try:
        with error:
            told = json.loads(error.read(_MOST))
        code, message = told["error"], told["message"]
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
        return f"the answer is {error.code} {error.reason}"
    if code == "not_found":
        return "this broker forwards nothing (lc.topic.forward.config)"
    return str(message)

"""Whose pages may use a service from a browser, by the header Origin (RFC 6454, 7) that a browser sends for them and no
page can change."""

from collections.abc import Iterable
from typing import Final

EVERY: Final = "*"
OPAQUE: Final = ("null", "file://")
"""What browsers send for pages without an origin, such as files."""
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}
_MOST_TOLD: Final = 10
_LONGEST_TOLD: Final = 200


class Origins:
    """Those that a setting names, and that of the service itself; with `any_port` that of any server on its host."""

    def __init__(self, names: Iterable[str], *, any_port: bool = False) -> None:
        self.names = tuple(dict.fromkeys(_plain(name) for name in names if name))
        self._any_port = any_port

    def allows(self, origin: str, host: str) -> bool:
        """Whether a page of this origin may; `host` is what the header Host says."""
        plain = _plain(origin)
        if EVERY in self.names or plain in self.names:
            return True
        scheme, mark, own = plain.partition("://")
        asked = _plain(f"{scheme}://{host}").partition("://")[2]
        if self._any_port:
            own, asked = _without_port(own), _without_port(asked)
        return bool(mark and own) and own == asked

    def refusal(self, origin: str, host: str, setting: str) -> str:
        """The reason in one line, for the client and for the log. `setting` is where the names come from; empty: from
        none."""
        shown = ascii(origin[:_LONGEST_TOLD])
        told = f"{_without_port(host)[:_LONGEST_TOLD]!a} at any port"
        if self.names:
            told += ", " + ", ".join(self.names[:_MOST_TOLD])
        if len(self.names) > _MOST_TOLD:
            told += f" and {len(self.names) - _MOST_TOLD} more"
        named = f"; {setting} names others" if setting else ""
        return f"pages of {shown} may not connect here; allowed are those of {told}{named}"


def why_no_origin(name: str) -> str | None:
    """Why this can be none that a setting names, in one clause."""
    if name in (EVERY, *OPAQUE):
        return None
    scheme, mark, host = name.removesuffix("/").partition("://")
    if scheme and mark and host and not set(host) & set("/?#@* "):
        return None
    return f"{name!r} is no origin: allowed are those such as https://a.example and http://10.0.0.7:3000, null, and *"


def _plain(origin: str) -> str:
    """As browsers send it: in lower case, without the port that its scheme has anyway (RFC 6454, 6.2)."""
    origin = origin.rstrip("/").lower()
    return origin.removesuffix(_DEFAULT_PORTS.get(origin.partition("://")[0], " "))


def _without_port(host: str) -> str:
    name, _, port = host.rpartition(":")
    return name if port.isdigit() else host

"""Files of a folder over HTTP, with what caches need: ETag, Cache-Control, 304 for what a client has (RFC 9110, 13).

Files are read in a worker thread, a piece at a time, so neither a slow disk nor a large file holds the loop or memory.
"""

import mimetypes
import os
import stat
from pathlib import Path
from typing import Final

import trio

from leafcuttr_sdk.trouble import exhausted
from leafcuttr_sdk.web.errors import ApiError
from leafcuttr_sdk.web.exchange import Exchange

_PIECE: Final = 256 * 1024


class StaticFiles:
    """The files below a folder. As a `Handler` it is for a route whose path ends with `{path*}`:

        routes.add("GET", "/static/{path*}", StaticFiles(Path(__file__).parent / "static"))

    A folder is answered with its `index.html`. What lies outside, also by a symbolic link, is not there, nor is a name
    that begins with a dot. `max_age_s` is for how long a cache may serve a file without a request here; `fallback`
    names the file for paths that are none, for an application with routes of its own in the browser.
    """

    def __init__(self, folder: Path, *, max_age_s: int = 3600, fallback: str | None = None) -> None:
        self._folder = Path(os.path.realpath(folder))
        self._fallback = fallback
        self._cache_control = f"max-age={max_age_s}" if max_age_s else "no-cache"

    async def __call__(self, exchange: Exchange) -> None:
        path = exchange.parameters.get("path", "")
        found = await trio.to_thread.run_sync(_open, self._folder, path)
        if found is None and self._fallback is not None:
            found = await trio.to_thread.run_sync(_open, self._folder, self._fallback)
        if found is None:
            raise ApiError(404, f"There is nothing at {exchange.path}.")
        descriptor, name, size, etag = found
        try:
            await self._answer(exchange, descriptor, name, size, etag)
        finally:
            os.close(descriptor)

    async def _answer(self, exchange: Exchange, descriptor: int, name: str, size: int, etag: str) -> None:
        headers = [(b"etag", etag.encode()), (b"cache-control", self._cache_control.encode())]
        if _has(exchange.header(b"if-none-match"), etag):
            await exchange.send({"type": "http.response.start", "status": 304, "headers": headers})
            await exchange.send({"type": "http.response.body", "body": b"", "more_body": False})
            return
        content_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
        if content_type.startswith("text/") or content_type == "application/javascript":
            content_type += "; charset=utf-8"
        headers += [
            (b"content-type", content_type.encode()),
            (b"content-length", b"%d" % size),
            (b"x-content-type-options", b"nosniff"),
        ]
        await exchange.send({"type": "http.response.start", "status": 200, "headers": headers})
        left = 0 if exchange.method == "HEAD" else size
        while left:
            piece = await trio.to_thread.run_sync(os.pread, descriptor, min(left, _PIECE), size - left)
            if not piece:
                raise OSError(f"{name} became shorter while it was sent")
            left -= len(piece)
            await exchange.send({"type": "http.response.body", "body": piece, "more_body": True})
        await exchange.send({"type": "http.response.body", "body": b"", "more_body": False})


def _open(folder: Path, path: str) -> tuple[int, str, int, str] | None:
    """Descriptor, name, size and ETag of the file that a path means; None where there is none. In a worker thread."""
    parts = path.split("/")
    if "\0" in path or any(part.startswith(".") for part in parts):
        return None
    target = os.path.realpath(folder.joinpath(*(part for part in parts if part)))
    if target != str(folder) and not target.startswith(f"{folder}{os.sep}"):
        return None
    for name in (target, f"{target}/index.html"):
        try:
            # A FIFO without a writer would be waited for.
            descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            if exhausted(error):
                raise
            return None
        about = os.fstat(descriptor)
        if stat.S_ISREG(about.st_mode):
            return descriptor, name, about.st_size, f'"{about.st_mtime_ns:x}-{about.st_size:x}"'
        os.close(descriptor)
        if not stat.S_ISDIR(about.st_mode):
            return None
    return None


def _has(if_none_match: str | None, etag: str) -> bool:
    """Whether the client has what this ETag names (RFC 9110, 13.1.2: a weak comparison)."""
    if if_none_match is None:
        return False
    known = [each.strip().removeprefix("W/") for each in if_none_match.split(",")]
    return etag in known or "*" in known

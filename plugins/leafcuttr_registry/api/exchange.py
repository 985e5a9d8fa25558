"""A request of the API: the media types that it may have, what its query says, and its body as JSON."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Final

import trio

from leafcuttr_registry.api.bodies import TooManyValuesError, parse, parse_within
from leafcuttr_registry.checks import turns
from leafcuttr_sdk.web.errors import ApiError
from leafcuttr_sdk.web.exchange import Exchange
from leafcuttr_sdk.web.negotiation import JSON, choose, media_type
from leafcuttr_sdk.workers import WorkerDeadlineError, WorkerError, WorkerMemoryError

V1: Final = "application/vnd.schemaregistry.v1+json"
OFFERS: Final = (V1, "application/vnd.schemaregistry+json", JSON)
_BODIES: Final = frozenset({*OFFERS, "application/octet-stream"})
_SMALL: Final = 256 * 1024
"""A larger body is parsed in another process: a megabyte would hold the loop for some 20 ms."""
_EACH: Final = 1024
"""What a value of a list takes beside its characters, counted as such."""
_MEMORY_BYTES: Final = 1024 * 1024 * 1024


class RegistryExchange(Exchange):
    """One request. Errors have the media types of answers."""

    ERROR_TYPES: ClassVar[Sequence[str]] = OFFERS
    check_body: "Callable[[dict[str, Any]], None] | None" = None
    """Gets the body before the endpoint does; it may raise AuthorizationFailed."""

    async def give(self, value: object, status: int = 200) -> None:
        """Answer with JSON."""
        body = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        await self.give_bytes(body.encode("utf-8", "surrogatepass"), status)

    async def give_all(self, values: Iterable[object]) -> None:
        """Answer with a list, which may be of many megabytes: others get their turn while it is made."""
        parts: list[bytes] = []
        since = 0
        for value in values:
            text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
            parts.append(text.encode("utf-8", "surrogatepass"))
            since += len(text) + _EACH
            if since > _SMALL:
                since = 0
                await trio.lowlevel.checkpoint()
        await self.give_bytes(b"[" + b",".join(parts) + b"]")

    async def give_bytes(self, body: bytes, status: int = 200) -> None:
        """Answer with what is JSON already. Raises ApiError 406."""
        await self.answer(status, body, choose(self.header(b"accept"), OFFERS))

    async def body_json(self) -> dict[str, Any]:
        """The body, which has to be an object. Raises ApiError 400, 413, 415, 422."""
        self.check_type()
        data = await self.read()
        limit = turns.begin()
        if not data.strip():
            raise ApiError(422, "The request has no body.")
        try:
            if len(data) <= _SMALL:
                found = parse(data)
            else:
                parsed = await self.serving.broker.run_in_worker(
                    parse_within,
                    limit.left_s,
                    data,
                    deadline_s=limit.left_s * turns.PATIENCE,
                    memory_bytes=_MEMORY_BYTES,
                )
                found = parsed.value
                limit.worked_s += parsed.used_s
        except ValueError as error:
            raise ApiError(400, f"The body is not JSON: {_first_line(error)}") from None
        except TooManyValuesError as error:
            raise ApiError(413, str(error)) from None
        except (WorkerDeadlineError, WorkerMemoryError):
            raise ApiError(413, "The body takes too long, or too much memory, to be read as JSON.") from None
        except WorkerError as error:
            raise ApiError(50001, f"The body cannot be read: {error}") from None
        if not isinstance(found, dict):
            raise ApiError(422 if found is None else 400, "The body has to be a JSON object.")
        if self.check_body is not None:
            self.check_body(found)
        return found

    def check_type(self) -> None:
        """Raises ApiError 415."""
        header = self.header(b"content-type")
        if header is None:
            return
        found = media_type(header)
        if found.name not in _BODIES:
            raise ApiError(415, f"HTTP 415 Unsupported Media Type: bodies are {', '.join(OFFERS)}.")
        if found.charset not in (None, "utf-8", "utf8", "us-ascii"):
            raise ApiError(415, f"HTTP 415 Unsupported Media Type: JSON is UTF-8, not {found.charset}.")

    def flag(self, name: str) -> bool:
        """A parameter that is true or false. Raises ApiError 400."""
        return self.text(name).lower() == "true" if self.scope["query_string"] else False

    def text(self, name: str) -> str:
        """The first value of a parameter; empty if it is not given. Raises ApiError 400."""
        if not self.scope["query_string"]:
            return ""
        return self.query.get(name, [""])[0]

    def texts(self, name: str) -> list[str]:
        """All values of a parameter, given once each or with commas between them. Raises ApiError 400."""
        if not self.scope["query_string"]:
            return []
        return [text for value in self.query.get(name, ()) for text in value.split(",") if text]

    def page(self, things: Sequence[Any]) -> Sequence[Any]:
        """What `offset` and `limit` leave of a list; a limit that is not above 0 leaves all. Raises ApiError 400."""
        if not self.scope["query_string"]:
            return things
        offset, limit = self._whole("offset", 0), self._whole("limit", -1)
        things = things[max(offset, 0) :]
        return things[:limit] if limit > 0 else things

    def _whole(self, name: str, default: int) -> int:
        text = self.text(name)
        if not text:
            return default
        try:
            return int(text[:20])
        except ValueError:
            raise ApiError(400, f"{name} has to be a whole number, not {text[:40]!r}.") from None


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0][:200]

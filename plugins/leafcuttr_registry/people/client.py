"""A client of any registry with Confluent's API, for commands: it blocks, one request at a time."""

import http.client
import json
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, unquote, urlencode, urlsplit, urlunsplit

from leafcuttr_sdk.authentication import basic_authorization
from leafcuttr_sdk.errors import PluginError

URL_VARIABLE: Final = "LEAFCUTTR_SCHEMA_REGISTRY_URL"
DEFAULT_URL: Final = "http://localhost:8081"
_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_MOST: Final = 256 * 1024 * 1024
_PAGE: Final = 1000


class RegistryError(PluginError):
    """The registry refuses a request. `code` is its error code, or the status of HTTP where it gives none."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class RegistryClient:
    """Each call raises RegistryError, or PluginError with a line for a person where no registry answers.

    `url` may have a user and a password in it, and a path. Several with commas: the first that answers.
    """

    def __init__(
        self,
        url: str | None = None,
        timeout_s: float = 30.0,
        *,
        ca_file: str | None = None,
        insecure: bool = False,
    ) -> None:
        given = url or os.environ.get(URL_VARIABLE) or DEFAULT_URL
        self._bases = [_base(each.strip()) for each in given.split(",") if each.strip()]
        self._timeout_s = timeout_s
        self._context: ssl.SSLContext | None = None
        if ca_file is not None or insecure:
            self._context = _tls(ca_file, insecure)

    def get(self, path: str, **query: object) -> Any:
        return self._ask("GET", path, query, None)

    def post(self, path: str, body: Mapping[str, Any], **query: object) -> Any:
        return self._ask("POST", path, query, body)

    def put(self, path: str, body: Mapping[str, Any], **query: object) -> Any:
        return self._ask("PUT", path, query, body)

    def delete(self, path: str, **query: object) -> Any:
        return self._ask("DELETE", path, query, None)

    def _ask(
        self, method: str, path: str, query: Mapping[str, object], body: Mapping[str, Any] | None
    ) -> Any:
        given = {
            name: str(value).lower() if isinstance(value, bool) else value
            for name, value in query.items()
            if value is not None
        }
        target = f"{path}?{urlencode(given)}" if given else path
        data = None if body is None else json.dumps(body).encode()
        unreachable = ""
        for base, headers in self._bases:
            request = urllib.request.Request(base + target, data, {**headers, "Accept": _TYPE}, method=method)
            if data is not None:
                request.add_header("Content-Type", _TYPE)
            try:
                with urllib.request.urlopen(
                    request, timeout=self._timeout_s, context=self._context
                ) as answer:
                    return _json(answer.read(_MOST), base)
            except urllib.error.HTTPError as error:
                raise _refusal(error, base) from None
            except (OSError, ValueError, http.client.HTTPException) as error:
                why = getattr(error, "reason", None) or error
                unreachable = f"no schema registry answers at {base}: {str(why) or type(why).__name__}"
        raise PluginError(unreachable)


def subject_path(subject: str, *more: object) -> str:
    """`/subjects/<subject>/...`, encoded."""
    return "/".join(["/subjects", *(quote(str(each), safe="") for each in (subject, *more))])


def all_versions(client: RegistryClient, prefix: str | None, **query: object) -> list[dict[str, Any]]:
    """What `GET /schemas` has, of subjects that begin with `prefix`: a page at a time, because Confluent's registry
    gives no more than a thousand at once (`schema.search.max.limit`). One that knows no pages gives all with the
    first."""
    found: dict[tuple[object, object], dict[str, Any]] = {}
    at = 0
    while True:
        page = client.get("/schemas", subjectPrefix=prefix or ":*:", offset=at, limit=_PAGE, **query)
        before = len(found)
        found.update(((each["subject"], each["version"]), each) for each in page)
        if len(found) == before:
            return list(found.values())
        at += len(page)


def _base(url: str) -> tuple[str, dict[str, str]]:
    """The address without what authenticates, and the header for that. Raises PluginError."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise PluginError(f"{_shown(url)!r} is no address of a schema registry: {error}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise PluginError(f"{_shown(url)!r} is no address of a schema registry: write http://HOST:PORT")
    headers = {}
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = basic_authorization(pair)
    shown = f"[{host}]" if ":" in host else host
    where = shown if port is None else f"{shown}:{port}"
    return urlunsplit((parts.scheme, where, parts.path.rstrip("/"), "", "")), headers


def _shown(url: str) -> str:
    """Without what may be a password."""
    before, at, host = url.rpartition("@")
    return f"{before[: before.find('://') + 3] if '://' in before else ''}...@{host}" if at else url


def _tls(ca_file: str | None, insecure: bool) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise PluginError(f"{ca_file}: no certificates can be read from it: {error}") from None
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _json(data: bytes, base: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise PluginError(f"what answers at {base} is no schema registry: it sends no JSON") from None


def _refusal(error: urllib.error.HTTPError, base: str) -> Exception:
    try:
        with error:
            found = json.loads(error.read(_MOST))
        return RegistryError(str(found["message"]), int(found["error_code"]))
    except (ValueError, KeyError, TypeError, RecursionError, OSError, http.client.HTTPException):
        return RegistryError(f"the registry at {base} answers {error.code} {error.reason}", error.code)

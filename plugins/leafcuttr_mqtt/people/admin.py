"""What the MQTT broker answers on the admin port, below `/plugins/mqtt`, and its health check."""

import json
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import trio

from leafcuttr_mqtt.people import rows
from leafcuttr_mqtt.people.current import running_of
from leafcuttr_mqtt.people.ways import ways_checks
from leafcuttr_mqtt.topics.names import matches, why_no_filter
from leafcuttr_sdk.admin import AdminRoute, Finding, HealthCheck, Request, Response

if TYPE_CHECKING:
    from leafcuttr_mqtt.routing.clients import Client
    from leafcuttr_mqtt.server.running import Running
    from leafcuttr_sdk.broker import Broker

_PIECE: Final = 500
"""Rows in a piece of an answer: a millisecond or two of the loop."""
_NO_STORE: Final = (("Cache-Control", "no-store"),)

Answer = Callable[["Running", Request], Response]


def routes(broker: "Broker") -> Iterator[AdminRoute]:
    """All of them. The broker lets programs on its machine only send DELETE."""

    def route(path: str, summary: str, answer: Answer, change: Answer | None = None) -> AdminRoute:
        async def handler(request: Request) -> Response:
            running = running_of(broker)
            if running is None:
                return _problem(
                    404, "not_running", "the MQTT broker is not running; the broker's log says why"
                )
            return (
                answer(running, request)
                if change is None or request.method != "DELETE"
                else change(running, request)
            )

        return AdminRoute(path, handler, summary, ("GET",) if change is None else ("GET", "DELETE"))

    yield route("/", "the MQTT broker in a few numbers", _overview)
    yield route("/clients", "clients that are connected to MQTT", _clients)
    yield route(
        "/clients/{client_id}", "a connected client; DELETE ends its connection", _client, _disconnect
    )
    yield route("/sessions", "MQTT sessions, those whose clients are away among them", _sessions)
    yield route("/sessions/{client_id}", "an MQTT session; DELETE ends it", _session, _delete_session)
    yield route("/retained", "topics with a retained message; ?filter=; DELETE", _retained, _clear_retained)
    yield route("/mappings", "the mappings from MQTT to Kafka topics", _mappings)
    yield route("/mappings/test", "where a message of ?topic= would be stored", _mapping_test)


def health_checks(broker: "Broker") -> Iterator[HealthCheck]:
    def look() -> Finding:
        running = running_of(broker)
        if running is None:
            return Finding(False, "it is not running")
        hub = running.hub
        trouble = running.trouble
        if trouble:
            return Finding(False, trouble)
        return Finding(True, f"{hub.connected} connected, {len(hub.clients)} sessions")

    yield HealthCheck("storing", "what MQTT clients publish is stored, and is acknowledged", look)
    yield from ways_checks(broker)


def _overview(running: "Running", _: Request) -> Response:
    hub, counts, seen = running.hub, running.counts, running.seen
    return _json(
        {
            "listeners": running.listeners,
            "started_ms": running.started_ms,
            "connected": hub.connected,
            "most_connected": counts.most_connected,
            "sessions": len(hub.clients),
            "subscriptions": len(hub.router.subscriptions),
            "retained": len(hub.retained),
            "retained_bytes": hub.retained.bytes,
            "messages_received": counts.received,
            "messages_sent": counts.sent,
            "dropped": {reason.value: count for reason, count in hub.drops.items()},
            "waiting": seen.waiting,
            "waiting_bytes": seen.waiting_bytes,
        }
    )


def _clients(running: "Running", _: Request) -> Response:
    return _list(running.hub.clients.values(), lambda one: rows.client_row(one) if one.connection else None)


def _sessions(running: "Running", _: Request) -> Response:
    return _list(running.hub.clients.values(), rows.session_row)


def _client(running: "Running", request: Request) -> Response:
    client = _known(running, request)
    if client is None or client.connection is None:
        return _problem(404, "no_such_client", "no client with this id is connected")
    return _json(rows.session_details(client))


def _session(running: "Running", request: Request) -> Response:
    client = _known(running, request)
    if client is None:
        return _problem(404, "no_such_session", "there is no session of a client with this id")
    return _json(rows.session_details(client))


def _known(running: "Running", request: Request) -> "Client | None":
    return running.hub.clients.get(request.parameters["client_id"])


def _disconnect(running: "Running", request: Request) -> Response:
    if not running.hub.disconnect(request.parameters["client_id"]):
        return _problem(404, "no_such_client", "no client with this id is connected")
    running.turns.conclude()
    return _json({"disconnected": True})


def _delete_session(running: "Running", request: Request) -> Response:
    if not running.hub.delete_session(request.parameters["client_id"]):
        return _problem(404, "no_such_session", "there is no session of a client with this id")
    running.turns.conclude()
    return _json({"deleted": True})


def _retained(running: "Running", request: Request) -> Response:
    wanted = request.query.get("filter", [None])[0]
    if wanted is None:
        return _list(running.hub.retained, rows.retained_row)
    wrong = why_no_filter(wanted)
    if wrong is not None:
        return _problem(400, "no_filter", f"{wanted[:200]!r} is no topic filter: {wrong}")
    return _list(running.hub.retained.match(wanted, running.now_ms()), rows.retained_row)


def _clear_retained(running: "Running", request: Request) -> Response:
    wanted = request.query.get("filter", [None])[0]
    if wanted is None:
        return _problem(400, "no_filter", "say which by ?filter=; # is for all of them")
    wrong = why_no_filter(wanted)
    if wrong is not None:
        return _problem(400, "no_filter", f"{wanted[:200]!r} is no topic filter: {wrong}")
    hub = running.hub
    topics = [message.topic for message in hub.retained if matches(wanted, message.topic)]
    cleared = hub.clear_retained(topics)
    running.turns.conclude()
    return _json({"cleared": cleared})


def _mappings(running: "Running", _: Request) -> Response:
    return _json(rows.mapping_rows(running.mapping.rules))


def _mapping_test(running: "Running", request: Request) -> Response:
    topic = request.query.get("topic", [None])[0]
    if topic is None:
        return _problem(400, "no_topic", "say which MQTT topic by ?topic=")
    client_id, qos = (request.query.get(name, [""])[0] for name in ("client_id", "qos"))
    try:
        return _json(rows.mapping_test(running.writer, topic, client_id, int(qos or 1)))
    except ValueError as error:
        return _problem(400, "no_topic", f"{topic[:200]!r} is no topic for a message: {error}")


def _list(values: Iterable[Any], row: Callable[[Any], rows.Row | None]) -> Response:
    """An array, made in pieces: there may be very many."""

    async def pieces() -> AsyncGenerator[bytes, None]:
        every, before = list(values), "["
        for start in range(0, len(every), _PIECE):
            found = [made for each in every[start : start + _PIECE] if (made := row(each)) is not None]
            if found:
                yield (before + ",\n".join(json.dumps(one) for one in found)).encode()
                before = ",\n"
            await trio.lowlevel.checkpoint()
        yield b"[]\n" if before == "[" else b"]\n"

    return Response(pieces(), headers=_NO_STORE)


def _json(value: object, status: int = 200) -> Response:
    return Response(json.dumps(value).encode() + b"\n", status=status, headers=_NO_STORE)


def _problem(status: int, code: str, message: str) -> Response:
    fields: Mapping[str, str] = {"error": code, "message": message}
    return _json(fields, status)

"""What a broker answers of its flows on the admin port, below `/plugins/forward`, and its health check. The address of
a command that runs flows answers the same paths."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from leafcuttr_forward.people.current import RunningFlows, running_of
from leafcuttr_forward.people.rows import flow_details, flow_row, trouble_of
from leafcuttr_sdk.admin import AdminRoute, Finding, HealthCheck, Request, Response

if TYPE_CHECKING:
    from leafcuttr_sdk.broker import Broker

_NO_STORE: Final = (("Cache-Control", "no-store"),)
_MOST_NAMED: Final = 3


def routes(broker: "Broker") -> Iterator[AdminRoute]:
    """A list, and one flow. They change nothing: `leafcuttr flows pause` writes to the target."""

    async def flows(_: Request) -> Response:
        return flows_answer(running_of(broker), broker.clock.now_ms())

    async def flow(request: Request) -> Response:
        return flow_answer(running_of(broker), request.parameters["flow"], broker.clock.now_ms())

    yield AdminRoute("/flows", flows, "the flows between clusters, with their lag")
    yield AdminRoute("/flows/{flow}", flow, "a flow, with the offsets of its partitions on both sides")


def health_checks(broker: "Broker") -> Iterator[HealthCheck]:
    """One: the flows that do not go on."""

    def look() -> Finding:
        return finding_of(running_of(broker))

    yield HealthCheck("flows", "nothing keeps the flows between clusters from going on", look)


def flows_answer(running: RunningFlows, now_ms: int) -> Response:
    """All of them, a row each."""
    return json_answer([flow_row(report, now_ms) for report in running.all()])


def flow_answer(running: RunningFlows, name: str, now_ms: int) -> Response:
    """One of them; 404 for a name that none has."""
    report = running.reports.get(name)
    if report is None:
        return json_answer({"error": "no_such_flow", "message": f"no flow has the name {name[:249]}"}, 404)
    return json_answer(flow_details(report, now_ms))


def finding_of(running: RunningFlows) -> Finding:
    """In one line: what is wrong with the first flows that do not go on, or how many there are."""
    ill = [
        f"{each.name}: {trouble_of(each) or each.state.value}" for each in running.all() if not each.is_well
    ]
    if not ill:
        count = len(running.reports)
        notes = [f"{each.name}: {note}" for each in running.all() for note in each.notes.values()]
        return Finding(True, "; ".join([f"{count} flow{'' if count == 1 else 's'}", *notes[:_MOST_NAMED]]))
    more = f"; {len(ill) - _MOST_NAMED} more" if len(ill) > _MOST_NAMED else ""
    return Finding(False, "; ".join(ill[:_MOST_NAMED]) + more)


def json_answer(value: Any, status: int = 200) -> Response:
    """For programs; nothing keeps it."""
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    return Response(body, status=status, headers=_NO_STORE)

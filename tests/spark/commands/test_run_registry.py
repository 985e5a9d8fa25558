"""A registry that is killed while a pipeline decodes: the pipeline waits for it, no record becomes a dead letter."""

from __future__ import annotations

import io
import json
import signal
import urllib.request
from pathlib import Path
from typing import Any

import fastavro

from spark.commands.piped import NEEDS_SPARK, PATIENCE_S, TEXT, Pipe, serving
from support import librdkafka
from support.broker_process import Restarting
from support.waiting import free_port, until

pytestmark = NEEDS_SPARK

OLD: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "string"}, {"name": "amount", "type": "int"}],
}
MIDDLE: dict[str, Any] = {**OLD, "doc": "written by another program"}
NEW: dict[str, Any] = {**OLD, "fields": [*OLD["fields"], {"name": "note", "type": "string", "default": ""}]}


class Registry:
    """One in a broker of its own, at the same address after a kill."""

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        settings = {
            "lc.schema.registry.enable": "true",
            "lc.schema.registry.host": "127.0.0.1",
            "lc.schema.registry.port": str(port),
        }
        self.broker = Restarting(folder, settings)

    def register(self, subject: str, schema: dict[str, Any]) -> int:
        request = urllib.request.Request(
            f"{self.url}/subjects/{subject}/versions",
            json.dumps({"schema": json.dumps(schema)}).encode(),
            {"content-type": "application/vnd.schemaregistry.v1+json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return int(json.load(answer)["id"])


def send(pipe: Pipe, schema: dict[str, Any], id: int, amounts: range) -> None:
    values = []
    for number in amounts:
        data = io.BytesIO()
        data.write(b"\0" + id.to_bytes(4, "big"))
        fastavro.schemaless_writer(data, schema, {"id": str(number), "amount": number})
        values.append(data.getvalue())
    librdkafka.send(pipe.address, pipe.name, values, timestamp=1_700_000_000_000)


def test_a_registry_that_is_killed_is_waited_for(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "registry")
    try:
        with serving(tmp_path, "--log-level", "info") as served:
            text = TEXT.replace("{format: json, columns: {id: string, amount: int}}", "avro")
            text = text.replace("checkpoint:", f"registry: '{registry.url}'\ncheckpoint:")
            pipe = Pipe(served.address, tmp_path, text)
            ids = [registry.register(f"{pipe.name}-value", schema) for schema in (OLD, MIDDLE, NEW)]
            assert len({*ids}) == 3
            send(pipe, OLD, ids[0], range(20))
            served.take(pipe)
            restarts = served.row(lambda row: row["rows"] == 20, "what is there")["restarts"]
            registry.broker.process.stop(signal.SIGKILL)
            # Neither of these was asked for yet.
            send(pipe, MIDDLE, ids[1], range(20, 40))
            send(pipe, NEW, ids[2], range(40, 60))
            row = served.row(lambda row: row["trouble"], "a line that says so")
            away = f"the batch waits for the registry: no schema registry answers at {registry.url}: "
            assert row["trouble"].startswith(away)
            assert (row["state"], row["rows"], row["restarts"]) == ("running", 20, restarts)
            check = served.asked("/health")["checks"]["spark:pipelines"]
            assert (check["ok"], check["detail"]) == (False, f"{pipe.name}: {row['trouble']}")
            # So do the tasks that wait.
            until(lambda: served.log.count("waiting for it") >= 3, "their lines", seconds=PATIENCE_S)
            assert pipe.amounts() == list(range(10, 20))
            registry.broker.process = registry.broker._start()
            # The batch is done a moment before the run is asked again what it waits for.
            row = served.row(lambda row: row["rows"] == 60 and not row["trouble"], "all rows, and no trouble")
            assert (row["state"], row["restarts"], row["dead_letters"]) == ("running", restarts, 0)
            assert served.asked("/health")["checks"]["spark:pipelines"]["ok"] is True
            assert pipe.amounts() == list(range(10, 60))
            assert librdkafka.watermarks(served.address, f"{pipe.name}-dead") == (0, 0)
    finally:
        registry.broker.end()

"""Telling others that the broker is ready: a line for people, a file for programs."""

import json
import os
from pathlib import Path

from leafcuttr.config import listeners
from leafcuttr.state.broker import Broker
from leafcuttr.version import __version__


def ready_line(broker: Broker, directory: str) -> str:
    """One line with the bound addresses and the place of the data, for example

    `LeafCuttr 0.7.0 is ready on PLAINTEXT://localhost:9092, data in ./leafcuttr-data`.
    """
    where = ", ".join(
        f"{listener.name}://{address(listener.host, listener.port)}"
        for listener in (*broker.listeners, *broker.plugged.listeners.values())
    )
    return f"LeafCuttr {__version__} is ready on {where}, data in {directory}"


def write_ready_file(path: Path, broker: Broker, directory: str) -> None:
    """Write pid, bound addresses and data directory as JSON; the file appears whole or not at all."""
    about = {
        "version": __version__,
        "pid": os.getpid(),
        "listeners": {listener.name: address(listener.host, listener.port) for listener in broker.listeners},
        "plugin_listeners": {
            name: address(each.host, each.port) for name, each in broker.plugged.listeners.items()
        },
        "metrics": address(broker.admin.host, broker.admin.port) if broker.admin else None,
        "data": str(Path(directory).resolve()),
    }
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    beside.write_text(json.dumps(about) + "\n")
    beside.replace(path)


def address(host: str, port: int) -> str:
    """`host:port` of what is bound, or the path of a Unix socket."""
    return listeners.address(host or "0.0.0.0", port)

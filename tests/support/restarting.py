"""A broker process that is stopped or killed and comes back at the same address with the same data."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path

from support.broker_process import BrokerProcess, start_broker
from support.waiting import free_port


class Restarting:
    """A broker that comes back at the same address with the same data."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._settings = settings or {}
        self.address = f"127.0.0.1:{free_port()}"
        self.process = self._start()

    def _start(self) -> BrokerProcess:
        own = {"listeners": f"PLAINTEXT://{self.address}"}
        return start_broker(self._folder, {**own, **self._settings})

    def restart(self, how: signal.Signals) -> None:
        status = self.process.stop(how)
        assert status == (0 if how == signal.SIGTERM else -signal.SIGKILL), self.process.log[-3000:]
        self.process = self._start()

    def end(self) -> None:
        self.process.stop(signal.SIGKILL)

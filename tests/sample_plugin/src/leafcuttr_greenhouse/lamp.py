"""The service that runs the program of the lamp beside the broker."""

import sys

import trio

from leafcuttr_sdk import Broker, Restart

_MEMORY = 200 << 20


class Lamp:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        command = [sys.executable, "-m", "leafcuttr_greenhouse.lamp_program"]
        # Where the plugin is no installed package, the program finds it as the broker does.
        environment = {"PYTHONPATH": ":".join(sys.path), "LAMP": "north"}
        async with self._broker.child(
            "lamp",
            command,
            environment=environment,
            stop_s=2,
            memory_bytes=_MEMORY,
            restart=Restart.ON_FAILURE,
        ) as child:
            task_status.started()
            await child.ended()
            await trio.sleep_forever()

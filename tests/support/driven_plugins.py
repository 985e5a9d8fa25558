"""A broker with plugins that do badly (`bad_plugins`), and what makes their parts do so."""

from __future__ import annotations

import json
import re
import socket
import urllib.error
import urllib.request
from typing import Final

from leafcuttr.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from leafcuttr.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from support.broker_process import BrokerProcess
from support.logs import batch
from support.wire_client import WireClient

_BROKER: Final = 4


class Driven:
    """A broker with the bad plugins, and what makes their parts do badly."""

    def __init__(self, broker: BrokerProcess, wire: WireClient) -> None:
        self.broker = broker
        self.wire = wire
        self._address = f"http://{broker.about['metrics']}"

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(self._address + path, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def connect(self, listener: str) -> socket.socket:
        """A client of a listener that a plugin serves."""
        host, _, port = self.broker.about["plugin_listeners"][listener].rpartition(":")
        return socket.create_connection((host, int(port)), 60)

    def set(self, name: str, value: str) -> str | None:
        change = AlterableConfig(name=name, config_operation=0, value=value)
        resource = AlterConfigsResource(resource_type=_BROKER, resource_name="1", configs=[change])
        answer = self.wire.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses[0]
        return answer.error_message  # type: ignore[no-any-return]

    def create(self, topic: str, **configs: str) -> str | None:
        given = [CreatableTopicConfig(name=n.replace("_", "."), value=v) for n, v in configs.items()]
        topics = [CreatableTopic(name=topic, num_partitions=1, replication_factor=1, configs=given)]
        answer = self.wire.ask(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 5).topics[0]
        return answer.error_message  # type: ignore[no-any-return]

    def produce(self, topic: str) -> int:
        return self.wire.produce(topic, batch(1)).error_code

    def lines(self, plugin: str, part: str) -> list[str]:
        """What the log says of a part: of its plugin first, or of the part first as services do."""
        either = re.compile(rf"(plugin {plugin}: {part}|{part} of plugin {plugin}) failed")
        return [line for line in self.broker.log.splitlines() if either.search(line)]

    def is_well(self) -> bool:
        """Kafka and `/health` are answered, and what others than the bad plugins do is as it should be."""
        status, text = self.get("/health")
        checks = json.loads(text)["checks"]
        well = all(check["ok"] for name, check in checks.items() if name.startswith(("well:", "serving")))
        return status == 200 and well and self.produce("well") == 0

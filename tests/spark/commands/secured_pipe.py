"""A pipeline's file for a listener with SASL_SSL, its topics, and its rights."""

from __future__ import annotations

import json
import re
from itertools import count
from pathlib import Path

from support.needed_rights import MECHANISM, Rights
from support.secured_broker import NAME, SecuredBroker

PASSWORD_VARIABLE = "PIPELINE_PASSWORD"
"""Of the environment, where the file has its password from."""
_NUMBERS = count()
TEXT = """
pipeline: APP
cluster:
  bootstrap.servers: ADDRESS
  security.protocol: SASL_SSL
  ssl.ca.location: TRUSTED
  sasl.mechanism: MECHANISM
  sasl.username: USERNAME
  sasl.password: ${env:PIPELINE_PASSWORD}
session: {master: "local[2]", config: {spark.driver.memory: 512m, spark.sql.shuffle.partitions: 2}}
checkpoint: ./checkpoint
sources:
  orders: {topic: APP, value: {format: json, columns: {id: string, amount: int}}}
steps:
  - {name: large, from: orders, filter: amount >= 10}
sinks:
  large: {from: large, topic: APP-large}
dead-letters: {topic: APP-dead}
"""


class Pipe:
    """A pipeline of its own, with topics of one partition."""

    def __init__(self, secured: SecuredBroker, folder: Path) -> None:
        self.app = f"guarded-{next(_NUMBERS)}"
        self.rights = Rights(secured)
        self.file = folder / "orders.yaml"
        self.folder = folder
        names = {
            "APP": self.app,
            "ADDRESS": secured.addresses["SASL_SSL"],
            "TRUSTED": secured.trusted,
            "MECHANISM": MECHANISM,
            "USERNAME": NAME,
        }
        self.file.write_text(re.sub("|".join(names), lambda found: names[found.group()], TEXT))
        self.rights.create([self.app, f"{self.app}-large", f"{self.app}-dead"])

    def send(self, *amounts: int) -> None:
        self.rights.send(self.app, [json.dumps({"id": f"o{one}", "amount": one}) for one in amounts])

    def amounts(self) -> list[int]:
        """Of the committed records of the target."""
        return [json.loads(one)["amount"] for one in self.rights.read(f"{self.app}-large")]

"""`leafcuttr spark run` over SASL_SSL has the rights of the page, and no others: each record is there once, what is
missing it names in one line, and the password is in nothing that it says or writes."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from leafcuttr_spark.operating.exits import Exit
from support.broker_process import clean_environ
from support.needed_rights import MECHANISM, PIPELINE, Need, Rights, authorized_broker
from support.secured_broker import NAME, PASSWORD, SecuredBroker
from support.spark_patience import TOO_SLOW, TRIES

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        importlib.util.find_spec("pyspark") is None or shutil.which("java") is None,
        reason="Spark is not here",
    ),
    pytest.mark.timeout(1800),
]
SECONDS = 600.0
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


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with authorized_broker(tmp_path_factory.mktemp("spark")) as broker:
        yield broker


class Pipe:
    """A pipeline's file, its topics, and the command."""

    def __init__(self, secured: SecuredBroker, folder: Path) -> None:
        self.app = f"orders-{next(_NUMBERS)}"
        self.rights = Rights(secured)
        self.file = folder / "orders.yaml"
        self._folder = folder
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

    def run(self) -> tuple[int, str]:
        """To the end of what is there; the exit status, and what it says to people."""
        status, said = self._run()
        for _ in range(TRIES - 1):
            if TOO_SLOW in said:
                status, said = self._run()
        return status, said

    def _run(self) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "leafcuttr", "spark", "run", str(self.file), "--once"],
            capture_output=True, text=True, timeout=SECONDS, check=False,
            env=clean_environ({"PIPELINE_PASSWORD": PASSWORD}),
        )  # fmt: skip
        written = [each.read_bytes() for each in self._folder.rglob("*") if each.is_file()]
        assert not [
            each for each in (done.stdout.encode(), done.stderr.encode(), *written) if _SECRET in each
        ]
        return done.returncode, done.stderr


_SECRET = PASSWORD.encode()


def test_it_has_what_it_needs(secured: SecuredBroker, tmp_path: Path) -> None:
    pipe = Pipe(secured, tmp_path)
    pipe.rights.give(PIPELINE, pipe.app)
    pipe.send(*range(30))
    pipe.rights.send(pipe.app, ["no JSON"])
    for end in (30, 35):
        status, said = pipe.run()
        assert status == Exit.DONE, said
        assert pipe.amounts() == list(range(10, end))
        pipe.send(*range(end, end + 5))
    assert pipe.rights.read(f"{pipe.app}-dead") == ["no JSON"]
    pipe.rights.wait_for_offset(pipe.app, pipe.app, 36)
    denied = [line for line in secured.log.read_text().splitlines() if '"allowed": false' in line]
    assert not [line for line in denied if pipe.app in line]


@pytest.mark.parametrize("missing", PIPELINE, ids=str)
def test_a_right_is_missing(secured: SecuredBroker, tmp_path: Path, missing: Need) -> None:
    """A batch is marked at the first topic that it writes, by name: those of dead letters are needed where there are
    some."""
    pipe = Pipe(secured, tmp_path)
    dead = ["no JSON"] if missing.name == "{app}-dead" else []
    pipe.rights.give([one for one in PIPELINE if one != missing], pipe.app)
    pipe.send(*range(30))
    pipe.rights.send(pipe.app, dead)
    status, said = pipe.run()
    lines = [one for one in said.splitlines() if re.search(missing.says.format(app=pipe.app), one)]
    assert lines, said
    assert "Traceback" not in said
    if missing.without == "the query fails":
        assert status == Exit.FAILED
        assert lines[0].startswith("leafcuttr: ")
        assert pipe.amounts() == []
    else:
        assert status == Exit.DONE
        assert pipe.amounts() == list(range(10, 30))
    pipe.rights.give([missing], pipe.app)
    pipe.send(30)
    status, said = pipe.run()
    assert status == Exit.DONE, said
    assert pipe.amounts() == list(range(10, 31))
    assert pipe.rights.read(f"{pipe.app}-dead") == dead
    pipe.rights.wait_for_offset(pipe.app, pipe.app, 31 + len(dead))

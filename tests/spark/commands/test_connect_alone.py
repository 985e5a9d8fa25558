"""`leafcuttr[spark-connect]` alone, in an environment of its own: the client of Spark Connect without Spark itself."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from pathlib import Path

import pytest

from leafcuttr_sdk.blocking_peers import open_peer
from leafcuttr_spark.operating.letters import read_letters
from spark.commands.piped import NEEDS_SPARK, PATIENCE_S, Pipe
from support import librdkafka
from support.broker_process import BrokerProcess
from support.installed import ROOT, Environment, build_wheel
from support.spark_daemons import running_connect
from support.spark_patience import TOO_SLOW, TRIES
from support.waiting import free_port

pytestmark = [
    *NEEDS_SPARK,
    pytest.mark.skipif(
        importlib.util.find_spec("grpc_status") is None,
        reason="grpcio-status, which Spark Connect needs, is not here",
    ),
]

TEXT = """
pipeline: NAME
variables: {remote: "sc://127.0.0.1:1", delivery: at-least-once}
cluster: {bootstrap.servers: "ADDRESS"}
session: {remote: "${remote}"}
checkpoint: ./checkpoint
sources:
  orders: {topic: NAME, key: text, value: {format: json, columns: {id: string, amount: int}}, watermark: 1s}
  names: {topic: NAME-names, key: text, value: {format: json, columns: {name: string}}, table: {key: key}}
steps:
  - name: large
    from: orders
    filter: amount >= 10
  - name: doubled
    from: large
    python: {function: "shop:doubled", per: record, columns: {id: string, amount: int}}
  - name: totals
    from: orders
    aggregate: {by: [id], total: sum(amount)}
  - name: sliding
    from: orders
    aggregate: {by: [id], window: {sliding: 10s}, total: sum(amount)}
  - name: named
    from: orders
    lookup: {table: names, on: {id: key}}
sinks:
  large: {from: doubled, topic: NAME-large, delivery: "${delivery}"}
  totals: {from: totals, topic: NAME-totals, key: id, delivery: "${delivery}"}
  sliding: {from: sliding, topic: NAME-sliding, key: id, value: {columns: [total]}, delivery: "${delivery}"}
  named: {from: named, topic: NAME-named, key: id, value: {columns: [name, amount]}, delivery: "${delivery}"}
dead-letters: {topic: NAME-dead}
"""
SHOP = """
def doubled(row):
    if row["amount"] == 13:
        raise ValueError("unlucky")
    return {"id": row["id"], "amount": 2 * row["amount"]}
"""


class Alone:
    """The environment."""

    def __init__(self, folder: Path) -> None:
        import pyspark

        self._environment = Environment.create(folder / "alone")
        wheel = build_wheel(ROOT, folder)
        try:
            # The version of the server.
            self._environment.pip_install(f"{wheel}[spark-connect]", f"pyspark-client=={pyspark.__version__}")
        except AssertionError as error:
            pytest.skip(f"leafcuttr[spark-connect] cannot be installed here: {str(error)[-300:]}")

    def python(self, program: str) -> str:
        return self._environment.run("python", "-c", program, cwd=self._environment.folder)

    def ran(self, *words: str) -> tuple[int, list[str], list[str]]:
        """As `Pipe.ran`, of `leafcuttr spark` here."""
        program = str(self._environment.folder / "bin" / "leafcuttr")
        for left in reversed(range(TRIES)):
            done = subprocess.run(
                [program, "spark", *words],
                capture_output=True, text=True, env=self._environment.environ, timeout=PATIENCE_S,
            )  # fmt: skip
            if left == 0 or TOO_SLOW not in done.stderr:
                return done.returncode, done.stdout.splitlines(), done.stderr.splitlines()
        raise AssertionError("never reached")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Alone:
    return Alone(tmp_path_factory.mktemp("environment"))


def made(live: BrokerProcess, folder: Path) -> Pipe:
    pipe = Pipe(live.address, folder, TEXT)
    (folder / "shop.py").write_text(SHOP)
    for suffix in ("names", "totals", "sliding", "named"):
        librdkafka.create(live.address, f"{pipe.name}-{suffix}", 1)
    return pipe


def values(pipe: Pipe, suffix: str) -> list[dict[str, object]]:
    with open_peer({"bootstrap.servers": pipe.address}) as peer:
        return [json.loads(one.value or b"null") for one in read_letters(peer, f"{pipe.name}-{suffix}")]


def test_a_file_is_checked_drawn_run_and_looked_into(
    live: BrokerProcess, tmp_path: Path, alone: Alone
) -> None:
    assert alone.python(
        "import importlib.util as u; print(u.find_spec('py4j'), u.find_spec('pyspark.core'))"
    ) == ("None None\n")
    pipe = made(live, tmp_path)
    file = str(pipe.file)
    pipe.send(range(8, 14))
    pipe.send_bad()
    librdkafka.send(live.address, f"{pipe.name}-names", [b'{"name": "ten"}'], key=b"10", timestamp=1)
    assert alone.ran("check", file) == (0, [f"{file}: 2 sources, 5 steps, 4 sinks: nothing is wrong"], [])
    status, out, err = alone.ran("plan", file)
    assert (status, err) == (0, []) and "step sliding: aggregate by (id), sliding 10s" in "\n".join(out)
    with running_connect(tmp_path) as url:
        once = ("--once", "--set", f"remote={url}")
        status, _, err = alone.ran("run", file, *once, "--set", "delivery=exactly-once")
        assert status == 2 and "choose delivery=at-least-once" in err[-1], err
        status, out, err = alone.ran("run", file, *once)
        assert (status, err) == (0, [])
        assert out[-1].startswith("finished: batch 0 | ")
        assert pipe.amounts() == [20, 22, 24]
        totals = [{"total": number} for number in range(8, 14)]
        for suffix in ("totals", "sliding"):
            assert sorted(values(pipe, suffix), key=str) == sorted(totals, key=str)
        assert values(pipe, "named") == [{"name": "ten", "amount": 10}]
        with open_peer({"bootstrap.servers": pipe.address}) as peer:
            dead = read_letters(peer, f"{pipe.name}-dead")
            assert sorted(one.value or b"" for one in dead) == [b"no JSON", b'{"id": "13", "amount": 13}']
        status, out, err = alone.ran(
            "state", file, "totals", "--key", 'id="9"', "--set", f"remote={url}", "--json"
        )
        assert (status, err) == (0, [])
        assert [row["key"] for row in json.loads(out[0])] == [{"id": "9"}]

        pipe.file.write_text(pipe.file.read_text().replace("-dead}", "-dead, stop-after: 1}"))
        pipe.send_bad()
        status, _, err = alone.ran("run", file, *once)
        said = "dead-letters: 1 dead letters in this run: stop-after is 1. The last batch is not written"
        assert (status, err) == (3, [f"leafcuttr: {said}"])


def test_a_server_that_does_not_answer_is_a_line(live: BrokerProcess, tmp_path: Path, alone: Alone) -> None:
    """Within half a minute, without what the address has behind it."""
    away = f"sc://127.0.0.1:{free_port()}"
    remote = ("--set", f"remote={away}/;x-shop=hunter22")
    status, _, err = alone.ran("run", str(made(live, tmp_path).file), "--once", *remote)
    assert status == 1
    said = f"leafcuttr: session: Spark did not start: no server of Spark Connect answers at {away}"
    assert err == [said]


def test_a_session_that_is_not_remote_needs_more(live: BrokerProcess, tmp_path: Path, alone: Alone) -> None:
    pipe = made(live, tmp_path)
    pipe.file.write_text(pipe.file.read_text().replace('session: {remote: "${remote}"}', "session: local[2]"))
    status, _, err = alone.ran("run", str(pipe.file), "--once")
    assert status == 2
    assert err == [
        "leafcuttr: session: of Spark only the client of Spark Connect is installed: pip install 'leafcuttr[spark]',"
        " or name a server, as session: {remote: 'sc://host:15002'}"
    ]

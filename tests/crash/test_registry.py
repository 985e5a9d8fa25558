"""The broker is killed again and again while clients of its schema registry register, evolve and delete schemas, and
set compatibility: after each restart every version, id and level that was answered is there, what was deleted is not,
and no id was given to two schemas, also after compaction of `_schemas`.

Each client has subjects of its own, in two contexts, and notes what was answered. A request that the kill has left
without an answer may have been done or not: both are right, and what is there counts from then on.

After each kill all versions are read by the lists of `GET /schemas`, and the subjects that were asked for since the
kill before also one by one; at the end all subjects are read one by one. To do that after each kill would take longer
with each, and many kills would take hours.

The gate kills a few times, `--long` 100 times at random moments and at named points of the log's write path; `--kills`
as often as one likes. `--crash-seed` repeats the plan of a run, not its timing.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from crash.broker_run import BrokerRun
from support.registry import SETTINGS, Asked
from support.waiting import free_port, until

CLIENTS = 8
LEVELS = ("NONE", "BACKWARD", "FULL", "BACKWARD_TRANSITIVE")
POINTS = {"append.staged": 40, "append.written": 40, "append.published": 40, "soft-checkpoint.renamed": 1}
"""With one of how many passes the kill comes."""
COMPACTED = {
    "log.cleaner.backoff.ms": "300",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.roll.ms": "1000",
    "log.cleaner.delete.retention.ms": "0",
}
PATIENCE_S = 60.0


class Kept(NamedTuple):
    id: int
    fields: tuple[str, ...]
    deleted: bool = False


class Subject:
    """What one has answered for it."""

    def __init__(self) -> None:
        self.versions: dict[int, Kept] = {}
        self.level: str | None = None
        self.unsure = False
        """Whether the last request that may have changed it has no answer."""


class Ids:
    """The schema of each id that was answered, by context. It is never taken back."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, int], tuple[str, ...]] = {}
        self._lock = threading.Lock()
        self.wrong: list[str] = []

    def note(self, subject: str, id: int, fields: tuple[str, ...]) -> None:
        context = subject.rpartition(":")[0]
        with self._lock:
            before = self._given.setdefault((context, id), fields)
        if before != fields:
            self.wrong.append(f"id {id} of context {context!r} was given to {before} and to {fields}")

    def __len__(self) -> int:
        return len(self._given)


class Client:
    """One at a time, it does what comes to its mind."""

    def __init__(self, number: int, url: str, ids: Ids, dice: random.Random) -> None:
        self._name = f"c{number}"
        self._url = url
        self._ids = ids
        self._dice = dice
        self._made = 0
        self.subjects: dict[str, Subject] = {}
        self.asked: set[str] = set()
        """The subjects that a request since the last check may have changed."""
        self.answered = 0

    def run(self) -> None:
        """Until the broker is gone."""
        with httpx.Client(timeout=PATIENCE_S) as http:
            ask = Asked(self._url, http)
            try:
                while True:
                    self._something(ask)
                    self.answered += 1
            except httpx.TransportError:
                pass

    def _something(self, ask: Asked) -> None:
        what = self._dice.random()
        if what < 0.3 or not self.subjects:
            self._made += 1
            prefix = self._dice.choice(("", ":.other:"))
            name = f"{prefix}{self._name}-{self._made}"
            self.subjects[name] = Subject()
            self.asked.add(name)
            self._register(ask, name)
            return
        name = self._dice.choice(list(self.subjects)[-20:])
        subject = self.subjects[name]
        self.asked.add(name)
        if what < 0.65:
            self._register(ask, name)
        elif what < 0.75:
            level = self._dice.choice(LEVELS)
            self._change(ask, subject, "PUT", f"/config/{name}", {"compatibility": level})
            subject.level = level
        elif what < 0.85:
            live = [number for number, each in subject.versions.items() if not each.deleted]
            if live:
                number = self._dice.choice(live)
                self._change(ask, subject, "DELETE", f"/subjects/{name}/versions/{number}")
                subject.versions[number] = subject.versions[number]._replace(deleted=True)
        elif what < 0.92:
            dead = [number for number, each in subject.versions.items() if each.deleted]
            if dead:
                number = self._dice.choice(dead)
                path = f"/subjects/{name}/versions/{number}?permanent=true"
                self._change(ask, subject, "DELETE", path)
                del subject.versions[number]
                if not subject.versions:
                    subject.level = None
        elif any(not each.deleted for each in subject.versions.values()):
            self._change(ask, subject, "DELETE", f"/subjects/{name}")
            subject.versions = {
                number: each._replace(deleted=True) for number, each in subject.versions.items()
            }

    def _register(self, ask: Asked, name: str) -> None:
        subject = self.subjects[name]
        # Some are the same for all clients: two that register at once get one id.
        own = f"x{self._name}_{self._dice.randint(0, 300)}" if self._dice.random() < 0.5 else "shared"
        fields = (own, f"y{self._dice.randint(0, 30)}")
        found = self._change(
            ask,
            subject,
            "POST",
            f"/subjects/{name}/versions",
            {"schema": schema(fields), "schemaType": "AVRO"},
        )
        self._ids.note(name, found["id"], fields)
        # A deleted version of the same id makes way for the new one.
        subject.versions = {
            number: each
            for number, each in subject.versions.items()
            if not (each.deleted and each.id == found["id"] and number < found["version"])
        }
        subject.versions[found["version"]] = Kept(found["id"], fields)

    def _change(self, ask: Asked, subject: Subject, method: str, path: str, body: Any = None) -> Any:
        subject.unsure = True
        answer = ask(method, path, body)
        if answer.status != 200:
            self._ids.wrong.append(f"{method} {path} {body}: {answer.status} {answer.text[:300]}")
        subject.unsure = False
        return answer.json

    def check(self, ask: Asked, listed: dict[str, dict[int, Kept]], *, whole: bool) -> None:
        """All that was answered is there, and nothing else: `listed`, and by requests for each subject that may have
        changed since the last check (`whole`: for each one)."""
        for name in self.subjects.keys() - self.asked:
            there, kept = listed.get(name, {}), self.subjects[name].versions
            assert there == kept, f"{name}: {there} in the list, not {kept}"
        for name in list(self.subjects) if whole else sorted(self.asked):
            subject, there = self.subjects[name], self._there(ask, name)
            assert there == listed.get(name, {}), f"{name}: {there}, but {listed.get(name)} in the list"
            config = ask("GET", f"/config/{name}")
            level = config.json["compatibilityLevel"] if config.status == 200 else None
            for each in there.values():
                self._ids.note(name, each.id, each.fields)
                if not each.deleted:
                    by_id = ask.get(f"/schemas/ids/{each.id}?subject={name}")
                    assert by_id["schema"] == schema(each.fields)
            if not subject.unsure:
                assert there == subject.versions, f"{name}: {there}, not {subject.versions}"
                assert level == subject.level, f"{name}: {level}, not {subject.level}"
            else:
                self._check_unsure(name, subject, there)
            subject.versions, subject.level, subject.unsure = there, level, False
        self.asked.clear()

    def _check_unsure(self, name: str, subject: Subject, there: dict[int, Kept]) -> None:
        """One request may have been done: it makes one version, or takes away or deletes what it was about."""
        new = there.keys() - subject.versions.keys()
        assert len(new) <= 1, f"{name}: {there}, was {subject.versions}"
        for number in there.keys() & subject.versions.keys():
            before = subject.versions[number]
            assert there[number] in (before, before._replace(deleted=True)), (
                f"{name}: {there[number]}, was {before}"
            )
        for number in subject.versions.keys() - there.keys():
            assert subject.versions[number].deleted, f"{name}: version {number} is gone"

    def _there(self, ask: Asked, name: str) -> dict[int, Kept]:
        live = ask("GET", f"/subjects/{name}/versions")
        numbers = ask("GET", f"/subjects/{name}/versions?deleted=true")
        found: dict[int, Kept] = {}
        for number in numbers.json if numbers.status == 200 else ():
            version = ask.get(f"/subjects/{name}/versions/{number}?deleted=true")
            fields = fields_of(version["schema"])
            found[number] = Kept(version["id"], fields, live.status != 200 or number not in live.json)
        return found


def all_listed(ask: Asked) -> dict[str, dict[int, Kept]]:
    """The versions of all subjects, of all contexts, by the lists."""
    found: dict[str, dict[int, Kept]] = {}
    live = {(each["subject"], each["version"]) for each in pages(ask, "false")}
    for each in pages(ask, "true"):
        key = each["subject"], each["version"]
        kept = Kept(each["id"], fields_of(each["schema"]), key not in live)
        found.setdefault(each["subject"], {})[each["version"]] = kept
    return found


def pages(ask: Asked, deleted: str) -> Iterator[dict[str, Any]]:
    at = 0
    while page := ask.get(f"/schemas?subjectPrefix=:*:&deleted={deleted}&offset={at}&limit=1000"):
        yield from page
        at += len(page)


def fields_of(written: str) -> tuple[str, ...]:
    return tuple(each["name"] for each in json.loads(written)["fields"])


def schema(fields: tuple[str, ...]) -> str:
    listed = ",".join(f'{{"name":"{name}","type":"int","default":0}}' for name in fields)
    return f'{{"type":"record","name":"R","fields":[{listed}]}}'


@pytest.mark.long
@pytest.mark.timeout(0)
def test_nothing_that_was_answered_is_lost(
    tmp_path: Path, seed: int, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    long = bool(request.config.getoption("--long", default=False))
    given = request.config.getoption("--kills", default=None)
    kills = int(given) if given is not None else (100 if long else 2)
    port = free_port()
    run = BrokerRun(tmp_path, seed, {**SETTINGS, **COMPACTED, "lc.schema.registry.port": str(port)})
    plan = [""] * (kills - kills // 3) + [
        f"{name}:{run.random.randint(1, POINTS[name])}"
        for name in (run.random.choice(list(POINTS)) for _ in range(kills // 3))
    ]
    run.random.shuffle(plan)
    url, ids, began = f"http://127.0.0.1:{port}", Ids(), time.monotonic()
    clients = [Client(number, url, ids, random.Random(run.random.random())) for number in range(CLIENTS)]
    try:
        for point in [*plan, None]:
            assert run.start()
            with httpx.Client(timeout=PATIENCE_S) as http:
                ask = Asked(url, http)
                listed = all_listed(ask)
                assert listed.keys() <= {name for client in clients for name in client.subjects}
                for client in clients:
                    client.check(ask, listed, whole=point is None)
            assert not ids.wrong, ids.wrong
            if point is None:
                break
            threads = [threading.Thread(target=client.run) for client in clients]
            for thread in threads:
                thread.start()
            before = sum(client.answered for client in clients)
            until(
                lambda before=before: sum(client.answered for client in clients) >= before + 3 * CLIENTS,
                "answers",
                seconds=PATIENCE_S,
            )
            if point:
                run.arm(point)
                run.killed_by(point)
            else:
                run.kill(3.0 if long else 1.0)
            for thread in threads:
                thread.join()
            assert not ids.wrong, ids.wrong
        run.stop()
        run.verify()
        assert len(ids) > kills
    finally:
        run.end()
        with capsys.disabled():
            print(
                f"\nregistry: seed {seed}, {run.kills} kills in {time.monotonic() - began:.0f} s, "
                f"{sum(client.answered for client in clients)} changes answered, {len(ids)} ids, "
                f"slowest start {run.slowest_start:.2f} s"
            )
            for note in run.notes:
                print(f"  {note}")

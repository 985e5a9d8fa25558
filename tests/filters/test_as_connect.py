"""Filters make of a record what Kafka Connect's transforms of the same name make of it.

What these make was recorded (`connect/recorded.json`) by `python -m filters.test_as_connect`, from `tests`; under
`--long` it is compared with what they make now. Where they differ on purpose, `different` says why.
"""

from __future__ import annotations

import json
import struct
import subprocess
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from filters.connect.cases import TIMESTAMP, TOPIC, Case, cases
from leafcuttr_sdk import DeadLetter, Record, Routed
from support import jars
from support.making_filters import made
from support.real_kafka import VERSION

FOLDER = Path(__file__).parent / "connect"
RECORDED = FOLDER / "recorded.json"
ERROR = {"error": True}


CASES = list(cases())


def by_connect(asked: Iterable[Case]) -> list[dict[str, Any]]:
    home = jars.connect(VERSION)
    lines = [
        json.dumps(
            {
                "class": one.name,
                "config": one.config,
                "value": one.value,
                "topic": TOPIC,
                "timestamp": TIMESTAMP,
            }
        )
        for one in asked
    ]
    options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC"]
    command = ["java", *options, "-cp", f"{home}/libs/*", str(FOLDER / "Transforms.java")]
    done = subprocess.run(
        command, input="\n".join(lines), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@cache
def recorded() -> list[dict[str, Any]]:
    found = json.loads(RECORDED.read_text(encoding="utf-8"))
    assert isinstance(found, list)
    return found


def by_us(case: Case) -> dict[str, Any]:
    record = Record(None if case.value is None else case.value.encode(), timestamp=TIMESTAMP)
    verdict = made(f"{case.filter} on.error=dead-letter", topic=TOPIC).filter(record)
    if isinstance(verdict, DeadLetter):
        return ERROR
    topic = TOPIC
    if isinstance(verdict, Routed):
        verdict, topic = verdict
    assert isinstance(verdict, Record)
    headers = [[name, None if value is None else value.decode()] for name, value in verdict.headers]
    return {"value": read(verdict.value), "topic": topic, "headers": headers}


def read(data: bytes | str | None) -> str | None:
    """JSON without the order of members, which Connect does not keep: 1 and 1.0 differ, 1.0E7 and 10000000.0 do not.
    Null and no value are one, as they are for Connect."""
    value = None if data is None else json.loads(data)
    return None if value is None else json.dumps(value, sort_keys=True)


def theirs(result: dict[str, Any]) -> dict[str, Any]:
    return ERROR if "error" in result else {**result, "value": read(result["value"])}


def different(case: Case, ours: dict[str, Any], connect: dict[str, Any]) -> str:
    """Why the two differ on purpose; empty where there is no reason."""
    value = None if case.value is None else json.loads(case.value)
    if value is None and connect == ERROR:
        return "a tombstone passes"
    if (
        case.name == "Cast$Value"
        and isinstance(value, dict)
        and type(value["a"]) is list
        and connect == ERROR
    ):
        return "of a list each element is cast"
    if case.name == "MaskField$Value" and ours != ERROR and connect != ERROR:
        missing = {name: None for name in case.config["fields"].split(",") if name not in value}
        if read(json.dumps({**json.loads(ours["value"]), **missing})) == connect["value"]:
            return "a field that is missing is not added as null"
    if "float32" in case.filter:
        if "Infinity" in str(connect["value"]):
            return "a number beyond a float is refused"
        if same_float(json.loads(ours["value"]), json.loads(connect["value"])):
            return "the shortest text of a float, which Java has since version 19"
    if case.name == "TimestampConverter$Value" and ours == ERROR and '"58859-' in connect["value"]:
        return "years are those of a calendar, up to 9999"
    return ""


def same_float(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        one, other = one["a"], other["a"]
    return struct.pack("<f", one) == struct.pack("<f", other)


@pytest.mark.parametrize("name", sorted({case.name for case in CASES}))
def test_as_connect(name: str) -> None:
    for case, result in zip(CASES, recorded(), strict=True):
        if case.name == name:
            ours, connect = by_us(case), theirs(result)
            assert ours == connect or different(case, ours, connect), (case, ours, connect)


def test_what_differs_is_known() -> None:
    pairs = [(case, by_us(case), theirs(result)) for case, result in zip(CASES, recorded(), strict=True)]
    reasons = Counter(different(*pair) for pair in pairs if pair[1] != pair[2])
    assert reasons == {
        "a tombstone passes": 5,
        "a field that is missing is not added as null": 6,
        "a number beyond a float is refused": 2,
        "the shortest text of a float, which Java has since version 19": 6,
        "years are those of a calendar, up to 9999": 1,
    }


@pytest.mark.long
def test_what_was_recorded_is_what_connect_makes() -> None:
    if (why := jars.missing()) is not None:
        pytest.skip(why)
    assert by_connect(CASES) == recorded()


if __name__ == "__main__":
    results = by_connect(CASES)
    RECORDED.write_text("[\n" + ",\n".join(json.dumps(one) for one in results) + "\n]\n", encoding="utf-8")

"""Apache Avro's Java library, asked through tests/registry/avro/AvroOracle.java, and what it has answered before.

    PYTHONPATH=tests python -m support.avro_oracle

asks it anew and writes tests/registry/avro/recorded.jsonl, from which the gate's slice is read.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from random import Random
from typing import Any

from support import jars
from support.avro_schemas import change, make

VERSION = "1.12.2"
FOLDER = Path(__file__).parents[1] / "registry" / "avro"
RECORDED = FOLDER / "recorded.jsonl"
PAIRS = 400
SEED = 17


def ask(questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """An answer for each question. Raises RuntimeError."""
    folder = jars.cache(f"avro-{VERSION}")
    wanted = [("org.apache.avro", "avro", VERSION, ""), ("org.slf4j", "slf4j-nop", "2.0.18", "")]
    jars._fetch(folder, f"avro-{VERSION}.jar", wanted)
    options = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{folder}/libs/*"]
    done = subprocess.run(
        ["java", *options, str(FOLDER / "AvroOracle.java")],
        input="\n".join(json.dumps(one) for one in questions),
        capture_output=True,
        text=True,
    )
    answers = [json.loads(line) for line in done.stdout.split("\n") if line]
    if len(answers) != len(questions):
        raise RuntimeError(f"{len(answers)} answers to {len(questions)} questions: {done.stderr[-2000:]}")
    return answers


def pairs(number: int, seed: int, depth: int = 3) -> list[tuple[str, str]]:
    """A reader's and a writer's text: mostly one and a change of it."""
    random = Random(seed)
    made: list[tuple[str, str]] = []
    for _ in range(number):
        reader = make(random, depth)
        writer = change(random, reader) if random.random() < 0.85 else make(random, depth)
        made.append((json.dumps(reader), json.dumps(writer)))
    return made


def answered(made: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """What Java's library makes of each pair: `canonical` texts, None where it refuses one, and `differences`."""
    questions: list[dict[str, Any]] = []
    for pair in made:
        questions += [{"ask": "parse", "references": [], "text": text} for text in pair]
        questions.append({"ask": "compare", "reader": pair[0], "writer": pair[1]})
    answers = ask(questions)
    return [
        {
            "texts": pair,
            "canonical": [answers[3 * at].get("canonical"), answers[3 * at + 1].get("canonical")],
            "differences": answers[3 * at + 2].get("differences"),
        }
        for at, pair in enumerate(made)
    ]


def main() -> None:
    with RECORDED.open("w", encoding="utf-8") as file:
        for one in answered(pairs(PAIRS, SEED, depth=2)):
            file.write(json.dumps(one, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()

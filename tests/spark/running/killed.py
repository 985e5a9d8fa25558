"""A program that runs a pipeline to the end of what is there, a hundred records a batch: `killed.py ADDRESS FOLDER`.

It has two topics, files and dead letters. The environment may name a point at which it ends (`leafcuttr_spark.points`).
"""

from __future__ import annotations

import sys
from pathlib import Path

from leafcuttr_spark.pipelines.model import (
    DeadLetters,
    Decoding,
    Encoding,
    FileTarget,
    Pipeline,
    SessionSettings,
    Sink,
    Source,
    Step,
    TopicOrigin,
    TopicTarget,
    Trigger,
)
from leafcuttr_spark.pipelines.operations import Branch, Cast


def pipeline(address: str, folder: Path) -> Pipeline:
    origin = TopicOrigin(("numbers",), value=Decoding("text", as_="number"), key=Decoding("text"))
    plain = Encoding("text", columns=("number",))
    return Pipeline(
        "killed",
        {"numbers": Source(origin)},
        (
            Step("cast", Cast({"number": "int"})),
            Step("parity", Branch({"odd": "number % 2 = 1"}, default="even")),
        ),
        {
            "odd": Sink("odd", TopicTarget("odd", value=plain)),
            "even": Sink("even", TopicTarget("even", value=plain)),
            "files": Sink("odd", FileTarget("files", "json")),
        },
        clusters={"main": {"bootstrap.servers": address}},
        session=SessionSettings(
            "local[2]", config={"spark.driver.memory": "512m", "spark.sql.shuffle.partitions": "2"}
        ),
        checkpoint="checkpoint",
        trigger=Trigger(available_now=True),
        records_per_batch=100,
        dead_letters=DeadLetters("dead"),
        file=folder / "killed.yaml",
    )


def main() -> None:
    from leafcuttr_spark.running.run import start
    from leafcuttr_spark.running.session import session_of

    address, folder = sys.argv[1:]
    found = pipeline(address, Path(folder))
    start(found, session_of(found)).wait()


if __name__ == "__main__":
    main()

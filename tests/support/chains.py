"""Chains for logs, of plain functions, and the dead letters that they post."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from leafcuttr.log.append.chain.chain import Chain, Step, Tally
from leafcuttr.log.append.chain.dead_letters import Letters
from leafcuttr.runtime.complaints import Complaints
from leafcuttr.runtime.plugin_parts import Failures, Part
from leafcuttr_sdk.records import Record

Call = Callable[[Record], Any]


class TestChain:
    """A chain for topic `t`. `posted` are the dead letters, which stay unfinished; `seen` how often a call was made."""

    __test__ = False

    def __init__(
        self,
        *filters: Call,
        validators: tuple[Call, ...] = (),
        refusal: str | None = None,
        dead_letter_topic: str = "t.dlq",
        forget: Callable[[], None] | None = None,
        in_threads: Mapping[Call, Callable[[Any], Any]] | None = None,
    ) -> None:
        self._in_threads = in_threads or {}
        self.posted: list[Letters] = []
        self.seen = 0
        self.filters = [
            self._step("record filter", f"f{n}", call)._replace(forget=forget)
            for n, call in enumerate(filters)
        ]
        self.validators = [
            self._step("produce validator", f"v{n}", call) for n, call in enumerate(validators)
        ]
        self.chain = Chain(
            "t",
            validators=self.validators,
            filters=self.filters,
            dead_letter_topic=dead_letter_topic,
            refuses_letters=lambda topic: "it is an internal topic" if topic.startswith("__") else None,
            post=self.posted.append,
            complain=Complaints(logging.getLogger("tests.chain")),
            failures=Failures(),
            refusal=refusal,
        )

    def _step(self, kind: str, name: str, call: Call) -> Step:
        part = Part("tests", f"{kind} {name} of topic t")
        return Step(name, self._counted(call), Tally(), part, in_thread=self._in_threads.get(call))

    def _counted(self, call: Call) -> Call:
        def counted(record: Record) -> Any:
            self.seen += 1
            return call(record)

        return counted


def keep(record: Record) -> Record:
    return record

"""Rights, beside a Kafka with its StandardAuthorizer: every API, with and without each right that it needs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from leafcuttr.wire.api import APIS, ApiKey
from parity.access import Admin, Walk, settings
from parity.allowed import verdict
from parity.compare import ORDER, differences, table
from parity.side import Side
from support import jars
from support.broker_process import running_broker
from support.real_kafka import properties, real_kafka
from support.waiting import free_port


def newest(key: ApiKey) -> tuple[int, ...]:
    return (APIS[key].max_version,)


def every(key: ApiKey) -> tuple[int, ...]:
    return tuple(range(APIS[key].min_version, APIS[key].max_version + 1))


@pytest.mark.long
@pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))
@pytest.mark.parametrize(
    "versions", [newest, pytest.param(every, marks=pytest.mark.long)], ids=["newest", "every version"]
)
def test_the_same_answers_under_the_same_rights(
    tmp_path: Path, versions: Callable[[ApiKey], tuple[int, ...]]
) -> None:
    sides: list[Side] = []
    with ExitStack() as stack:
        for name in ("kafka", "ours"):
            folder = tmp_path / name
            folder.mkdir()
            admin_port = free_port()
            if name == "kafka":
                lines = settings("{port}", admin_port, "{controller}")
                port = stack.enter_context(real_kafka(folder, *lines)).port
            else:
                port, controller = free_port(), free_port()
                file = properties(folder, port, controller)
                lines = settings(port, admin_port, controller)
                file.write_text("\n".join((file.read_text(), *lines, "")))
                stack.enter_context(running_broker(folder, config=file))
            side = Side("127.0.0.1", port, "access")
            sides.append(side)
            stack.callback(side.close)
            admin = Admin("127.0.0.1", admin_port, "access")
            stack.callback(admin.close)
            Walk(side, admin).run(versions)
    # What may differ is named by the request, whatever the rights are; of orders the scenarios of each API speak.
    plain = (replace(row, case=row.case.partition(": ")[2]) for row in differences(*sides))
    rows, _ = verdict(row for row in plain if not row.path.endswith(ORDER))
    if rows:
        pytest.fail(f"{len(rows)} differences\n{table(rows)}", pytrace=False)

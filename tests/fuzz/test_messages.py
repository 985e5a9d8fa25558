"""Well-formed requests of every API and version with hostile values: the broker answers or closes, and lives on.

The values come from hypothesis by the declarations of the messages, leaning towards names that exist and towards the
ends of every integer. The memory of the broker and its log are looked at after every API.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from leafcuttr.wire.api import APIS, ApiKey
from leafcuttr.wire.schema import BYTES, RECORDS, STRING, FieldSpec
from support.broker_process import BrokerProcess, running_broker
from support.logs import batch
from support.peer import framed, request_bytes
from support.wire_strategies import messages

TOPIC = "fuzzed"
PATIENCE_S = 180.0
"""Only a bound for a broker that does neither: 10,000 partitions may be asked for, of a busy machine."""
PHASES = [Phase.generate]  # a broker remembers: what is shrunk would not be the same case
_NAMES = st.sampled_from(
    f"{TOPIC} other __consumer_offsets . .. a/b é g range 1 -1 0 consumer retention.ms cleanup.policy compression.type "
    "segment.bytes compact".split()
) | st.sampled_from(["", "x" * 249, "x" * 250])
_SMALL = st.integers(-3, 8)
_COUNTS = {
    8: st.sampled_from([-128, -1, 0, 1, 2, 3, 127]),
    16: st.sampled_from([-32768, -1, 0, 1, 2, 32767]),
    32: _SMALL | st.sampled_from([-(2**31), 2**31 - 1, 10_001, 1000]),
    64: _SMALL | st.sampled_from([-(2**63), 2**63 - 1, 2**31, 1_700_000_000_000]),
}
# A wait that is honoured for long would only slow the test down; how long waits end is tested elsewhere.
_WAITS = st.sampled_from([-(2**31), -1, 0, 1])


def hostile(cls: type[Any], spec: FieldSpec) -> st.SearchStrategy[Any] | None:
    kind = getattr(spec.type, "element", spec.type)
    if spec.name in {"max_wait_ms", "rebalance_timeout_ms"}:
        return _WAITS
    if spec.name == "session_timeout_ms":
        return st.sampled_from([6000, 0, -1, 2**31 - 1])
    if kind is STRING:
        return _NAMES
    if kind is RECORDS:
        return st.sampled_from([b"", bytes(61), bytes(batch(2)), bytes(batch(1))[:-1]]) | st.binary(
            max_size=80
        )
    if kind is BYTES:
        return st.binary(max_size=20)
    bits = 8 * getattr(kind, "size", 0)
    return _COUNTS[bits] if bits in _COUNTS and getattr(kind, "code", "").islower() else None


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    folder = tmp_path_factory.mktemp("fuzz")
    options = {"num.partitions": "2", "offsets.topic.num.partitions": "2", "delete.topic.enable": "true"}
    with running_broker(folder, options) as running:
        yield running
    assert "Traceback" not in running.log


def answer(port: int, data: bytes, seconds: float = PATIENCE_S) -> bytes | None:
    """The frame that comes back, or None if the broker closes. Raises TimeoutError if it does neither."""
    with socket.create_connection(("127.0.0.1", port), seconds) as sock:
        got = b""
        with suppress(ConnectionResetError):
            sock.sendall(data)
            while len(got) < 4 or len(got) < 4 + int.from_bytes(got[:4], "big"):
                more = sock.recv(1 << 20)
                if not more:
                    return None
                got += more
        return got[4:]


CASES = [
    pytest.param(key, version, id=f"{api.module}-{version}")
    for key, api in sorted(APIS.items())
    for version in range(api.min_version, api.max_version + 1)
    if api.serves(version)
]


@pytest.mark.one_in(26)
@pytest.mark.parametrize(("key", "version"), CASES)
def test_every_request(broker: BrokerProcess, request: pytest.FixtureRequest, key: int, version: int) -> None:
    api = APIS[key]
    examples = 200 if request.config.getoption("--long") else 3

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=PHASES,
    )
    @given(messages(api.request, version, hostile))
    def ask(message: Any) -> None:
        if key == ApiKey.PRODUCE and message.acks == 0:
            message = replace(message, acks=1)

        data = request_bytes(message, version, correlation_id=77)
        try:
            found = answer(broker.port, framed(data))
        except TimeoutError:
            raise AssertionError(f"neither an answer nor a close: {message}") from None
        assert found is None or found[:4] == struct.pack(">i", 77)

    ask()
    log = broker.log
    assert broker.alive(), log[-3000:]
    assert "Traceback" not in log, log[log.index("Traceback") - 300 :][:4000]

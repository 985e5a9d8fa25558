"""A relay between LeafCuttr and a real Apache Kafka, 4 and 3, each of them as source and as target, with TLS and with
each mechanism of SASL, by the keys of kaf-relay's configuration."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from forward.clusters import create, produce, values
from forward.conftest import MakeRun
from leafcuttr_forward.relay.running import Run
from support import jars
from support.live_broker import LiveBroker
from support.real_kafka import VERSION
from support.secure_kafka import (
    MECHANISMS,
    PLAIN_PASSWORD,
    SECURITY,
    SecureKafka,
    credentials,
    secure_kafka,
)

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing())),
    pytest.mark.timeout(900),
]
_NUMBERS = itertools.count(1)
WAYS = [
    (protocol, mechanism)
    for protocol in SECURITY
    for mechanism in (MECHANISMS if protocol.startswith("SASL") else (None,))
] + [("MTLS", None)]


@pytest.fixture(scope="module", params=[VERSION, "3.9.1"])
def kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    version = str(request.param)
    try:
        jars.home(version)
    except RuntimeError as error:
        pytest.skip(f"Apache Kafka {version} cannot be fetched: {str(error)[:200]}")
    with secure_kafka(tmp_path_factory.mktemp("kafka"), version) as found:
        yield found


def keys(kafka: SecureKafka, protocol: str, mechanism: str | None) -> str:
    """Lines of `[[sources]]` or `[target]`."""
    lines = ['session_timeout = "30s"']
    if "SSL" in protocol or protocol == "MTLS":
        lines += [
            "enable_tls = true",
            f'ca_cert_path = "{kafka.ca}"',
            f'client_cert_path = "{kafka.own}"',
            f'client_key_path = "{kafka.own}"',
        ]
    if mechanism is not None:
        user, password = credentials(mechanism)
        lines += [
            "enable_auth = true",
            f'sasl_mechanism = "{mechanism}"',
            f'username = "{user}"',
            f'password = "{password}"',
        ]
    return "\n".join(lines)


async def ended(run: Run) -> None:
    with trio.fail_after(120):
        await run.run()
    assert (run.status, run.why) == (0, None)


@pytest.mark.parametrize(("protocol", "mechanism"), WAYS)
async def test_there_and_back(
    protocol: str,
    mechanism: str | None,
    kafka: SecureKafka,
    make_run: MakeRun,
    edge: LiveBroker,
    hub: LiveBroker,
) -> None:
    number = next(_NUMBERS)
    there, back = f"there-{number}", f"back-{number}"
    create(edge.address, there, 3)
    expected = [[f"{partition}:{one}" for one in range(500)] for partition in range(3)]
    for partition in range(3):
        produce(edge.address, there, expected[partition], partition, **{"compression.type": "zstd"})
    more = keys(kafka, protocol, mechanism)
    address = kafka.address(protocol)
    await ended(make_run([edge.address], address, {there: there}, more=more, stop_at_end=True))
    for partition in range(3):
        assert values(kafka.address("PLAINTEXT"), there, partition) == expected[partition]
    sources = {"more_of_source": more}
    await ended(make_run([address], hub.address, {there: back}, stop_at_end=True, **sources))
    for partition in range(3):
        assert values(hub.address, back, partition) == expected[partition]


async def test_within_kafka(kafka: SecureKafka, make_run: MakeRun) -> None:
    address = kafka.address("PLAINTEXT")
    create(address, "within", 2)
    produce(address, "within", map(str, range(1000)), 1)
    await ended(make_run([address], address, {"within": "within-copy"}, stop_at_end=True))
    assert values(address, "within-copy", 1) == [str(each) for each in range(1000)]


@pytest.mark.parametrize("wrong", ["password", "certificate"])
async def test_what_kafka_refuses_is_said(
    wrong: str, kafka: SecureKafka, make_run: MakeRun, edge: LiveBroker, tmp_path: Path
) -> None:
    create(edge.address, name := f"refused-{next(_NUMBERS)}")
    if wrong == "password":
        more = keys(kafka, "SASL_PLAINTEXT", "PLAIN").replace(PLAIN_PASSWORD, "another")
        address, said = kafka.address("SASL_PLAINTEXT"), "refused"
    else:
        more, address, said = "enable_tls = true", kafka.address("SSL"), "certificate"
    more += '\nmax_retries = 2\nbackoff_enable = true\nbackoff_min = "10ms"\nbackoff_max = "20ms"'
    run = make_run([edge.address], address, {name: name}, more=more)
    with trio.fail_after(120):
        await run.run()
    assert run.status == 1
    assert "the target does not answer after 2 tries: hub: " in (run.why or "")
    assert said in (run.why or "")
    assert "\n" not in (run.why or "")

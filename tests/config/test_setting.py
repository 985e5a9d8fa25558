"""Reading, checking and writing single values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.config.catalog import BROKER, TOPIC
from leafcuttr.config.setting import (
    BOOLEAN,
    DOUBLE,
    INT,
    LIST,
    LONG,
    PASSWORD,
    SHORT,
    STRING,
    BadValueError,
    ConfigKey,
    ConfigType,
    Value,
    render,
)


def of(kind: ConfigType) -> ConfigKey:
    return ConfigKey("x", kind, None, "A setting.")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (BOOLEAN, " TRUE ", True),
        (BOOLEAN, "false", False),
        (INT, " +5 ", 5),
        (INT, "-2147483648", -(2**31)),
        (SHORT, "32767", 32767),
        (LONG, "9223372036854775807", 2**63 - 1),
        (DOUBLE, "1e3", 1000.0),
        (DOUBLE, ".5", 0.5),
        (STRING, "  a b ", "a b"),
        (LIST, " a , b,c ", ("a", "b", "c")),
        (LIST, "", ()),
        (PASSWORD, " a ", " a "),
    ],
)
def test_reads(kind: ConfigType, text: str, value: Value) -> None:
    assert of(kind).parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        (BOOLEAN, "yes", "Expected value to be either true or false"),
        (INT, "", "Not a number of type INT"),
        (INT, "2147483648", "Not a number of type INT"),
        (INT, "1_000", "Not a number of type INT"),
        (INT, "\u0661", "Not a number of type INT"),
        (INT, "9" * 5000, "Not a number of type INT"),
        (SHORT, "32768", "Not a number of type SHORT"),
        (LONG, "1.0", "Not a number of type LONG"),
        (DOUBLE, "nan", "Not a number of type DOUBLE"),
        (DOUBLE, "1_0", "Not a number of type DOUBLE"),
    ],
)
def test_refuses_in_the_words_of_kafka(kind: ConfigType, text: str, reason: str) -> None:
    with pytest.raises(BadValueError, match=f"^{reason}$"):
        of(kind).parse(text)


# Read off a real broker.
@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        (
            "retention.ms",
            "abc",
            "Invalid value abc for configuration retention.ms: Not a number of type LONG",
        ),
        ("retention.ms", "", "Invalid value  for configuration retention.ms: Not a number of type LONG"),
        ("retention.ms", "-2", "Invalid value -2 for configuration retention.ms: Value must be at least -1"),
        (
            "segment.bytes",
            "1000",
            "Invalid value 1000 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (
            "segment.bytes",
            "3000000000",
            "Invalid value 3000000000 for configuration segment.bytes: Not a number of type INT",
        ),
        (
            "cleanup.policy",
            "delete,foo",
            "Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        (
            "compression.type",
            "foo",
            "Invalid value foo for configuration compression.type: "
            "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer",
        ),
        (
            "compression.gzip.level",
            "0",
            "Invalid value 0 for configuration compression.gzip.level: Value must be between 1 and 9 or equal to -1",
        ),
        (
            "compression.gzip.level",
            "10",
            "Invalid value 10 for configuration compression.gzip.level: Value must be between 1 and 9 or equal to -1",
        ),
        (
            "compression.lz4.level",
            "18",
            "Invalid value 18 for configuration compression.lz4.level: Value must be no more than 17",
        ),
        (
            "min.cleanable.dirty.ratio",
            "2",
            "Invalid value 2.0 for configuration min.cleanable.dirty.ratio: Value must be no more than 1",
        ),
        (
            "leader.replication.throttled.replicas",
            "a:b",
            "Invalid value [a:b] for configuration leader.replication.throttled.replicas: "
            "leader.replication.throttled.replicas must be the literal '*' or a list of replicas in the following "
            "format: [partitionId]:[brokerId],[partitionId]:[brokerId],...",
        ),
    ],
)
def test_the_whole_sentence(name: str, text: str, sentence: str) -> None:
    setting = TOPIC[name]
    with pytest.raises(BadValueError) as caught:
        setting.parse(text)
    assert setting.refusal(text, caught.value) == sentence


@pytest.mark.parametrize("text", ["", "*", "none", "0:1", "0:1, 3:1"])
def test_throttled_replicas(text: str) -> None:
    TOPIC["leader.replication.throttled.replicas"].parse(text)


@pytest.mark.parametrize("text", ["", "compact", "delete,delete", " delete , compact"])
def test_cleanup_policies(text: str) -> None:
    TOPIC["cleanup.policy"].parse(text)


def test_choices_that_ignore_case() -> None:
    setting = BROKER["group.consumer.migration.policy"]
    assert setting.parse("Upgrade") == "Upgrade"
    with pytest.raises(BadValueError, match="case insensitive"):
        setting.parse("sideways")


@pytest.mark.parametrize("text", ["host", "host:", ":5", "a:1,b"])
def test_limits_of_hosts(text: str) -> None:
    with pytest.raises(BadValueError, match="host:count"):
        BROKER["max.connections.per.ip.overrides"].parse(text)


def test_a_secret_is_not_repeated() -> None:
    setting = ConfigKey("p", PASSWORD, None, "A secret.", choices=("a",))
    with pytest.raises(BadValueError) as caught:
        setting.parse("hunter2")
    assert "hunter2" not in setting.refusal("hunter2", caught.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (("a", "b"), "a,b"),
        ((), ""),
        (0.5, "0.5"),
        (0.0, "0.0"),
        (1e-3, "0.001"),
        (9.9e-4, "9.9E-4"),
        (1e7, "1.0E7"),
        (1234567.5, "1234567.5"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (-2, "-2"),
    ],
)
def test_writes_as_java_does(value: Value, text: str | None) -> None:
    assert render(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_written_number_reads_back(value: float) -> None:
    assert of(DOUBLE).parse(render(value) or "") == value


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_written_integer_reads_back(value: int) -> None:
    assert of(LONG).parse(render(value) or "") == value

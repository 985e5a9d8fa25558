"""Options as Spark hands them over, and the lines for wrong ones."""

from __future__ import annotations

import pytest

from leafcuttr_spark.options import Option, OptionError, Values, milliseconds, sorted_out

TABLE = (
    Option("subscribe", "topics", "", "Topics."),
    Option("maxRows", "long", "", "Rows."),
    Option("kafka.group.id", "string", "", "A group."),
)


def values(**given: str) -> Values:
    return Values(sorted_out(given, TABLE)[0], TABLE)


def test_names_in_any_case_and_properties_of_the_client() -> None:
    known, client = sorted_out({"SUBSCRIBE": "a", "Kafka.ssl.x": "y", "kafka.group.id": "g"}, TABLE)
    assert known == {"subscribe": "a", "kafka.group.id": "g"}
    assert client == {"ssl.x": "y"}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("subscribes", "there is no option subscribes: did you mean subscribe?"),
        ("maxrow", "there is no option maxrow: did you mean maxRows?"),
        ("bootstrap.servers", "there is no option bootstrap.servers: did you mean kafka.bootstrap.servers?"),
        ("zzz", "there is no option zzz"),
    ],
)
def test_an_unknown_one_is_refused_with_the_nearest(name: str, said: str) -> None:
    with pytest.raises(OptionError) as caught:
        sorted_out({name: "1"}, TABLE)
    assert str(caught.value) == said


def test_numbers() -> None:
    assert values(maxRows=" 12 ").positive("maxRows") == 12
    assert values().positive("maxRows") is None
    for wrong in ("0", "-1", "1.5", "one", "", "9" * 30, "9223372036854775808"):
        with pytest.raises(OptionError, match="the option maxRows has the value"):
            values(maxRows=wrong).positive("maxRows")


def test_booleans_and_words() -> None:
    assert values(maxRows="TRUE").boolean("maxRows", False)
    assert values().boolean("maxRows", True)
    assert values(maxRows="Latest").one_of("maxRows", "error", ("error", "latest")) == "latest"
    with pytest.raises(OptionError, match="allowed is true or false"):
        values(maxRows="yes").boolean("maxRows", False)
    with pytest.raises(OptionError, match="allowed is error or latest"):
        values(maxRows="none").one_of("maxRows", "error", ("error", "latest"))


def test_a_long_value_is_cut_in_the_line() -> None:
    with pytest.raises(OptionError) as caught:
        values(maxRows="x" * 500).positive("maxRows")
    assert len(str(caught.value)) < 150


@pytest.mark.parametrize("text", ["[", "[" * 100_000, '{"a": 1, "a": 2}', "[1]", "1", "null", '"a"'])
def test_json_that_is_not_allowed(text: str) -> None:
    with pytest.raises(OptionError, match="allowed is JSON"):
        values(maxRows=text).json("maxRows", "JSON", lambda read: read.items() and int(read["a"]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("15m", 900_000),
        ("30 seconds", 30_000),
        ("1500", 1500),
        ("2h", 7_200_000),
        ("5ms", 5),
        ("1 day", 86_400_000),
    ],
)
def test_times_with_units(text: str, expected: float) -> None:
    assert milliseconds(text) == expected


@pytest.mark.parametrize("text", ["", "m", "-1s", "1 year", "1.5h", "1s 2s"])
def test_no_times(text: str) -> None:
    assert milliseconds(text) is None

"""Names of topics: the rules, and the reasons in Kafka's words."""

import pytest

from leafcuttr.errors import InvalidTopic
from leafcuttr.state import topic_names


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "...", "_", "-", "x" * 249, "__consumer_offsets"])
def test_good_names(name: str) -> None:
    assert topic_names.is_valid(name)
    topic_names.check(name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, f"the length of '{'x' * 250}' is longer than the max allowed length 249"),
        ("a b", "'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        (
            "../etc",
            "'../etc' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
        ),
        (
            "topic\n",
            "'topic\n' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
        ),
        ("ünï", "'ünï' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
    ],
)
def test_bad_names(name: str, reason: str) -> None:
    assert not topic_names.is_valid(name)
    with pytest.raises(InvalidTopic) as refused:
        topic_names.check(name)
    assert refused.value.message == f"Topic name is invalid: {reason}"


def test_dots_and_underscores_collide() -> None:
    assert topic_names.collision_key("a.b_c") == topic_names.collision_key("a_b.c")
    assert topic_names.collision_key("a.b") != topic_names.collision_key("a-b")

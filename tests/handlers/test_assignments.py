"""Assignments of replicas: on one broker only that broker, once."""

import pytest

from leafcuttr.errors import InvalidReplicaAssignment
from leafcuttr.handlers.assignments import check_replicas


def test_this_broker_once() -> None:
    check_replicas(1, [1])
    check_replicas(7, [7])


@pytest.mark.parametrize(
    ("replicas", "reason"),
    [
        ([], "an empty replica list"),
        ([2], "broker 2, but no such broker is registered"),
        ([2, 1], "broker 2, but no such broker is registered"),
        ([1, 0], "broker 0, but no such broker is registered"),
        ([1, 1], "the broker 1 more than once"),
        ([1, 1, 2], "the broker 1 more than once"),
    ],
)
def test_other_assignments_are_refused(replicas: list[int], reason: str) -> None:
    with pytest.raises(InvalidReplicaAssignment, match=reason):
        check_replicas(1, replicas)

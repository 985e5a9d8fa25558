"""Assignments of replicas to brokers, as three APIs carry them: on one broker only that broker can be
meant."""

from collections.abc import Sequence

from leafcuttr.errors import InvalidReplicaAssignment


def check_replicas(node_id: int, replicas: Sequence[int]) -> None:
    """Raise InvalidReplicaAssignment unless `replicas` is this broker, once."""
    if not replicas:
        raise InvalidReplicaAssignment("The manual partition assignment includes an empty replica list.")
    ordered = sorted(replicas)
    for place, replica in enumerate(ordered):
        if replica != node_id:
            raise InvalidReplicaAssignment(
                f"The manual partition assignment includes broker {replica}, but no such broker is registered."
            )
        if place:
            raise InvalidReplicaAssignment(
                f"The manual partition assignment includes the broker {replica} more than once."
            )

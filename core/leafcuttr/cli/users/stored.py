"""Users where they are stored: in a running broker, by Kafka's requests (KIP-554), or in a data directory that no
broker uses, as `kafka-storage.sh format --add-scram` has them for the first start."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from leafcuttr.cli.common.failures import Failure, reason
from leafcuttr.cli.common.offline import unused_metadata
from leafcuttr.cli.common.target import Target
from leafcuttr.state.security.credentials import ScramMechanism


class NewPassword(NamedTuple):
    mechanism: ScramMechanism
    iterations: int


class UserStore(Protocol):
    """Raises Failure from every method."""

    def users(self) -> dict[str, dict[ScramMechanism, int]]:
        """The iterations by mechanism, of every user."""
        ...

    def set_password(self, name: str, password: bytes, made: Sequence[NewPassword]) -> None:
        """Give the user these credentials. Those of other mechanisms stay."""
        ...

    def delete(self, name: str, mechanisms: Sequence[ScramMechanism]) -> None: ...


class UsersOfCluster:
    """Users of a cluster, Kafka's too."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def users(self) -> dict[str, dict[ScramMechanism, int]]:
        from leafcuttr.cli.common.wire_client.cluster import ClusterClient
        from leafcuttr.wire.messages.describe_user_scram_credentials import (
            DescribeUserScramCredentialsRequest,
        )

        with ClusterClient(self._target) as cluster:
            answer = cluster.first.send(DescribeUserScramCredentialsRequest(users=None))
        if answer.error_code:
            raise Failure(reason(answer.error_code, answer.error_message))
        return {
            one.user: {ScramMechanism(info.mechanism): info.iterations for info in one.credential_infos}
            for one in sorted(answer.results, key=lambda one: one.user)
        }

    def set_password(self, name: str, password: bytes, made: Sequence[NewPassword]) -> None:
        import os

        from leafcuttr.state.security.scram import salted
        from leafcuttr.wire.messages.alter_user_scram_credentials import ScramCredentialUpsertion

        upsertions = []
        for mechanism, iterations in made:
            salt = os.urandom(24)
            upsertions.append(
                ScramCredentialUpsertion(
                    name=name,
                    mechanism=mechanism,
                    iterations=iterations,
                    salt=salt,
                    salted_password=salted(mechanism, password, salt, iterations),
                )
            )
        self._alter(upsertions=upsertions)

    def delete(self, name: str, mechanisms: Sequence[ScramMechanism]) -> None:
        from leafcuttr.wire.messages.alter_user_scram_credentials import ScramCredentialDeletion

        self._alter(deletions=[ScramCredentialDeletion(name=name, mechanism=one) for one in mechanisms])

    def _alter(self, **what: object) -> None:
        from leafcuttr.cli.common.wire_client.cluster import ClusterClient
        from leafcuttr.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest

        request = AlterUserScramCredentialsRequest(**{"deletions": [], "upsertions": [], **what})  # type: ignore[arg-type]
        with ClusterClient(self._target) as cluster:
            answer = cluster.first.send(request)
        for one in answer.results:
            if one.error_code:
                raise Failure(f"{one.user}: {reason(one.error_code, one.error_message)}")


class UsersOfDirectory:
    """Users of a data directory, which need not be there yet, and which no broker may use meanwhile."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def users(self) -> dict[str, dict[ScramMechanism, int]]:
        found: dict[str, dict[ScramMechanism, int]] = {}
        with unused_metadata(self._directory) as store:
            for one in store.scram_credentials():
                found.setdefault(one.name, {})[ScramMechanism(one.mechanism)] = one.iterations
        return found

    def set_password(self, name: str, password: bytes, made: Sequence[NewPassword]) -> None:
        from leafcuttr.state.metadata import StoredScramCredential
        from leafcuttr.state.security.scram import new_credential

        rows = [
            StoredScramCredential(name, mechanism, *new_credential(mechanism, password, iterations))
            for mechanism, iterations in made
        ]
        with unused_metadata(self._directory) as store:
            store.set_scram_credentials(rows, [])

    def delete(self, name: str, mechanisms: Sequence[ScramMechanism]) -> None:
        with unused_metadata(self._directory) as store:
            store.set_scram_credentials([], [(name, int(one)) for one in mechanisms])

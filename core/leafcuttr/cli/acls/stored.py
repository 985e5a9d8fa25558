"""ACLs where they are stored: in a running broker, by Kafka's requests, or in a data directory that no broker uses."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from leafcuttr.cli.common.failures import Failure, reason
from leafcuttr.cli.common.offline import unused_metadata
from leafcuttr.cli.common.target import Target
from leafcuttr.state.security.acl import (
    Acl,
    AclFilter,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
)

SUPER_USERS = "super.users"
ALLOW = "allow.everyone.if.no.acl.found"


class AclStore(Protocol):
    """Raises Failure from every method."""

    def acls(self, wanted: AclFilter) -> list[Acl]: ...

    def add(self, acls: Sequence[Acl]) -> None: ...

    def remove(self, filters: Sequence[AclFilter]) -> list[Acl]:
        """What is gone."""
        ...

    def settings(self) -> Mapping[str, str]:
        """Of the authorizer, as far as they can be known."""
        ...


class AclsOfCluster:
    """ACLs of a cluster, Kafka's too."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def acls(self, wanted: AclFilter) -> list[Acl]:
        from leafcuttr.cli.common.wire_client.cluster import ClusterClient
        from leafcuttr.wire.messages.describe_acls import DescribeAclsRequest

        request = DescribeAclsRequest(**_fields(wanted))  # type: ignore[arg-type]
        with ClusterClient(self._target) as cluster:
            answer = cluster.first.send(request)
        if answer.error_code:
            raise Failure(f"ACLs: {reason(answer.error_code, answer.error_message)}")
        return sorted(
            Acl(
                AclResourceType(resource.resource_type),
                resource.resource_name,
                PatternType(resource.pattern_type),
                acl.principal,
                acl.host,
                AclOperation(acl.operation),
                AclPermission(acl.permission_type),
            )
            for resource in answer.resources
            for acl in resource.acls
        )

    def add(self, acls: Sequence[Acl]) -> None:
        from leafcuttr.cli.common.wire_client.cluster import ClusterClient
        from leafcuttr.wire.messages.create_acls import AclCreation, CreateAclsRequest

        creations = [
            AclCreation(
                resource_type=acl.resource_type,
                resource_name=acl.name,
                resource_pattern_type=acl.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acl in acls
        ]
        with ClusterClient(self._target) as cluster:
            answer = cluster.first.send(CreateAclsRequest(creations=creations))
        for acl, one in zip(acls, answer.results, strict=True):
            if one.error_code:
                raise Failure(f"{acl}: {reason(one.error_code, one.error_message)}")

    def remove(self, filters: Sequence[AclFilter]) -> list[Acl]:
        from leafcuttr.cli.common.wire_client.cluster import ClusterClient
        from leafcuttr.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest

        request = DeleteAclsRequest(filters=[DeleteAclsFilter(**_fields(each)) for each in filters])  # type: ignore[arg-type]
        with ClusterClient(self._target) as cluster:
            answer = cluster.first.send(request)
        gone: dict[Acl, None] = {}
        for result in answer.filter_results:
            if result.error_code:
                raise Failure(f"ACLs: {reason(result.error_code, result.error_message)}")
            for one in result.matching_acls:
                acl = Acl(
                    AclResourceType(one.resource_type),
                    one.resource_name,
                    PatternType(one.pattern_type),
                    one.principal,
                    one.host,
                    AclOperation(one.operation),
                    AclPermission(one.permission_type),
                )
                if one.error_code:
                    raise Failure(f"{acl}: {reason(one.error_code, one.error_message)}")
                gone[acl] = None
        return sorted(gone)

    def settings(self) -> Mapping[str, str]:
        from leafcuttr.cli.common.wire_client.cluster import ClusterClient
        from leafcuttr.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

        with ClusterClient(self._target) as cluster:
            resource = DescribeConfigsResource(
                resource_type=4,
                resource_name=str(next(iter(cluster.brokers()), "")),
                configuration_keys=[SUPER_USERS, ALLOW],
            )
            answer = cluster.first.send(DescribeConfigsRequest(resources=[resource]))
        return {
            one.name: one.value
            for result in answer.results
            for one in result.configs
            if one.value is not None
        }


class AclsOfDirectory:
    """ACLs of a data directory, which need not be there yet, and which no broker may use meanwhile."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def acls(self, wanted: AclFilter) -> list[Acl]:
        from leafcuttr.state.security.acls import of_stored

        with unused_metadata(self._directory) as store:
            return [acl for row in store.acls() if wanted.takes(acl := of_stored(row))]

    def add(self, acls: Sequence[Acl]) -> None:
        from leafcuttr.state.security.acls import stored

        with unused_metadata(self._directory) as store:
            store.change_acls([stored(acl) for acl in acls], [])

    def remove(self, filters: Sequence[AclFilter]) -> list[Acl]:
        from leafcuttr.state.security.acls import of_stored, stored

        with unused_metadata(self._directory) as store:
            found = [of_stored(row) for row in store.acls()]
            gone = [acl for acl in found if any(wanted.takes(acl) for wanted in filters)]
            store.change_acls([], [stored(acl) for acl in gone])
        return gone

    def settings(self) -> Mapping[str, str]:
        return {}


def _fields(wanted: AclFilter) -> dict[str, object]:
    return {
        "resource_type_filter": wanted.resource_type,
        "resource_name_filter": wanted.name,
        "pattern_type_filter": wanted.pattern_type,
        "principal_filter": wanted.principal,
        "host_filter": wanted.host,
        "operation": wanted.operation,
        "permission_type": wanted.permission,
    }

"""`leafcuttr cluster`: what kafka-cluster, kafka-broker-api-versions and kafka-features print.

Through our own client: librdkafka does not show versions and features.

Exit status of all of them: 0 done, 1 refused or no broker answers, 2 wrong usage.
"""

from typing import Any, Final

import click

from leafcuttr.cli.common.failures import Failure, reason
from leafcuttr.cli.common.options.target import target_options
from leafcuttr.cli.common.output import json_option, print_json, print_table
from leafcuttr.cli.common.target import Target

_OTHERS: Final = {
    17: "SaslHandshake",
    29: "DescribeAcls",
    30: "CreateAcls",
    31: "DeleteAcls",
    36: "SaslAuthenticate",
    38: "CreateDelegationToken",
    39: "RenewDelegationToken",
    40: "ExpireDelegationToken",
    41: "DescribeDelegationToken",
    50: "DescribeUserScramCredentials",
    51: "AlterUserScramCredentials",
    68: "ConsumerGroupHeartbeat",
    69: "ConsumerGroupDescribe",
    71: "GetTelemetrySubscriptions",
    72: "PushTelemetry",
    76: "ShareGroupHeartbeat",
    77: "ShareGroupDescribe",
    78: "ShareFetch",
    79: "ShareAcknowledge",
    80: "AddRaftVoter",
    81: "RemoveRaftVoter",
    83: "InitializeShareGroupState",
    84: "ReadShareGroupState",
    85: "WriteShareGroupState",
    86: "DeleteShareGroupState",
    87: "ReadShareGroupStateSummary",
    88: "StreamsGroupHeartbeat",
    89: "StreamsGroupDescribe",
    90: "DescribeShareGroupOffsets",
    91: "AlterShareGroupOffsets",
    92: "DeleteShareGroupOffsets",
}
"""Names of API keys that we have no messages for, as far as brokers offer them to clients."""


@click.group()
def command() -> None:
    """Show the id, the brokers, the features and the API versions of a cluster.

    Exit status: 0 done, 1 the broker refused or cannot be reached, 2 wrong usage.
    """


@command.command("id")
@target_options
@json_option
def cluster_id(target: Target, as_json: bool) -> None:
    """Print the id of the cluster.

    \b
    Examples:
      leafcuttr cluster id -b kafka.example.org:9092
    """
    found = _describe(target)["cluster_id"]
    if as_json:
        print_json({"cluster_id": found})
    else:
        click.echo(found)


@command.command(short_help="Print the brokers and the controller.")
@target_options
@json_option
def brokers(target: Target, as_json: bool) -> None:
    """Print the brokers, their addresses, and which of them is the controller.

    \b
    Examples:
      leafcuttr cluster brokers
      leafcuttr cluster brokers --json
    """
    found = _describe(target)
    if as_json:
        print_json(found)
        return
    print_table(
        ("BROKER", "HOST", "PORT", "RACK", "CONTROLLER", "STATE"),
        [
            (
                each["broker"],
                each["host"],
                each["port"],
                each["rack"],
                "yes" if each["broker"] == found["controller"] else "",
                "fenced" if each["fenced"] else "active",
            )
            for each in found["brokers"]
        ],
    )


def _describe(target: Target) -> dict[str, Any]:
    from leafcuttr.cli.common.wire_client.cluster import ClusterClient
    from leafcuttr.cli.common.wire_client.connection import NotOffered
    from leafcuttr.wire.messages.describe_cluster import DescribeClusterRequest

    with ClusterClient(target) as cluster:
        try:
            answer = cluster.first.send(DescribeClusterRequest(include_fenced_brokers=True))
        except NotOffered:  # before Kafka 2.8 (KIP-700)
            answer = cluster.metadata([])
    if answer.error_code:
        raise Failure(reason(answer.error_code, getattr(answer, "error_message", None)))
    return {
        "cluster_id": answer.cluster_id,
        "controller": answer.controller_id if answer.controller_id >= 0 else None,
        "brokers": sorted(
            (
                {
                    "broker": getattr(broker, "broker_id", getattr(broker, "node_id", -1)),
                    "host": broker.host,
                    "port": broker.port,
                    "rack": broker.rack,
                    "fenced": getattr(broker, "is_fenced", False),
                }
                for broker in answer.brokers
            ),
            key=lambda broker: int(broker["broker"]),
        ),
    }


@command.command(short_help="Print the features and their levels.")
@target_options
@json_option
def features(target: Target, as_json: bool) -> None:
    """Print the features of the cluster: the version levels that are on, and those that the broker supports.

    \b
    Examples:
      leafcuttr cluster features
    """
    from leafcuttr.cli.common.wire_client.cluster import ClusterClient

    with ClusterClient(target) as cluster:
        about = cluster.first.about
    levels = {each.name: each.max_version_level for each in about.finalized_features}
    rows = [
        {
            "feature": each.name,
            "level": levels.get(each.name, 0),
            "min": each.min_version,
            "max": each.max_version,
        }
        for each in sorted(about.supported_features, key=lambda each: str(each.name))
    ]
    if as_json:
        print_json({"epoch": about.finalized_features_epoch, "features": rows})
    else:
        print_table(("FEATURE", "LEVEL", "SUPPORTED"), [_feature(row) for row in rows])


def _feature(row: dict[str, Any]) -> tuple[object, ...]:
    return row["feature"], row["level"], f"{row['min']}-{row['max']}"


@command.command("api-versions", short_help="Print the APIs that brokers offer.")
@target_options
@json_option
def api_versions(target: Target, as_json: bool) -> None:
    """Print which versions of which APIs each broker offers, and the one that these commands use.

    \b
    Examples:
      leafcuttr cluster api-versions
      leafcuttr cluster api-versions --json
    """
    from leafcuttr.cli.common.wire_client.cluster import ClusterClient
    from leafcuttr.wire.api import APIS

    rows = []
    with ClusterClient(target) as cluster:
        for broker in cluster.brokers():
            for key, (first, last) in sorted(cluster.connection(broker).versions.items()):
                api = APIS.get(key)
                used = None if api is None else min(last, api.max_version)
                if api is not None and used is not None and used < max(first, api.min_version):
                    used = None
                name = _OTHERS.get(key) if api is None else api.name
                row = {"broker": broker, "key": key, "api": name, "min": first, "max": last}
                rows.append({**row, "used": used})
    if as_json:
        print_json(rows)
        return
    print_table(
        ("BROKER", "KEY", "API", "VERSIONS", "USED"),
        [(row["broker"], row["key"], row["api"], f"{row['min']}-{row['max']}", row["used"]) for row in rows],
    )

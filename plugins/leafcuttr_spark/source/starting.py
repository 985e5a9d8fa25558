"""The offsets that a query begins with, and those that a batch ends with, from the options."""

from collections.abc import Mapping

from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.options import OptionError
from leafcuttr_spark.source.cluster import ClusterView, Subscribed
from leafcuttr_spark.source.options import Bound, By, SourceOptions

Offsets = dict[TopicPartition, int]

_LATEST, _EARLIEST = -1, -2


def first_offsets(cluster: ClusterView, found: Subscribed, options: SourceOptions) -> Offsets:
    """Where each partition is read from. Raises OptionError."""
    place = options.starting
    offsets = _offsets(cluster, found, place)
    _check_ends(cluster, place, offsets)
    if place.by in (By.TIME, By.ONE_TIME) and options.late_start_fails:
        ends = cluster.ends(found.partitions)
        late = [str(one) for one, offset in offsets.items() if offset >= ends.get(one, 0)]
        if late:
            raise OptionError(
                f"the option {place.option} has a time behind the last record of {', '.join(late)};"
                " startingOffsetsByTimestampStrategy=latest begins at the end of these"
            )
    return offsets


def last_offsets(cluster: ClusterView, found: Subscribed, options: SourceOptions) -> Offsets:
    """Where a batch ends in each partition. Raises OptionError."""
    offsets = _offsets(cluster, found, options.ending)
    _check_ends(cluster, options.ending, offsets)
    return offsets


def _offsets(cluster: ClusterView, found: Subscribed, place: Bound) -> Offsets:
    if place.by is By.EARLIEST:
        return cluster.begins(found.partitions)
    if place.by is By.LATEST:
        return cluster.ends(found.partitions)
    if place.by is By.ONE_TIME:
        return cluster.at_times(dict.fromkeys(found.partitions, place.time))
    _check_names(place, found)
    return cluster.at_times(place.of) if place.by is By.TIME else _resolved(cluster, place.of)


def _check_names(place: Bound, found: Subscribed) -> None:
    """All partitions have to be named, so that none is read from a place that was not meant."""
    absent = [str(one) for one in found.partitions if one not in place.of]
    other = [str(one) for one in sorted(place.of) if one not in set(found.partitions)]
    if absent:
        raise OptionError(
            f"the option {place.option} does not name {', '.join(absent)}; it has to name all partitions"
        )
    if other:
        raise OptionError(
            f"the option {place.option} names {', '.join(other)}, which the query does not read"
        )


def _resolved(cluster: ClusterView, given: Mapping[TopicPartition, int]) -> Offsets:
    begins = cluster.begins(one for one, offset in given.items() if offset == _EARLIEST)
    ends = cluster.ends(one for one, offset in given.items() if offset == _LATEST)
    return {**given, **begins, **ends}


def _check_ends(cluster: ClusterView, place: Bound, offsets: Offsets) -> None:
    """Offsets that are given and not there yet would be waited for."""
    if place.by is not By.OFFSET:
        return
    ends = cluster.ends(offsets)
    for one, offset in sorted(offsets.items()):
        if offset > ends.get(one, 0):
            raise OptionError(
                f"the option {place.option} has {offset} for {one}, which ends at {ends.get(one, 0)}"
            )

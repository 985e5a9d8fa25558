"""What the operating system lets this broker have: open files. Disks are `directory`, ports are `listeners`."""

import resource
from collections.abc import Iterator
from typing import Final

from leafcuttr.cli.doctor.findings import DoctorFinding, fine, problem, warning
from leafcuttr.cli.doctor.local.directory import partitions_in
from leafcuttr.cli.doctor.local.site import Site

_BROKER: Final = 256  # for itself: the loop, the metadata, listeners
_PER_PARTITION: Final = 3  # its active segment and the two indexes of it
_EXPECTED: Final = 1000  # connections, where max.connections says nothing
_FEWEST: Final = 64
_NO_LIMIT: Final = 2**31 - 1
_PROPOSED: Final = 65536


def may_open_enough(site: Site) -> Iterator[DoctorFinding]:
    """The limit of open files suffices for the partitions and the connections.

    The broker raises its soft limit to the hard one by itself, so that the hard one counts.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    partitions = partitions_in(site.directory)
    given = site.settings.int("max.connections")
    connections = _EXPECTED if given == _NO_LIMIT else given
    wanted = _BROKER + _PER_PARTITION * partitions + connections
    seen = f"the limit of open files is {hard}, for {partitions} partitions and {connections} connections"
    # Of many partitions the broker keeps the files open that are in use, so that few descriptors cost time, not work.
    if hard == resource.RLIM_INFINITY or hard >= wanted:
        yield fine(seen)
        return
    enough = max(_PROPOSED, 1 << (wanted - 1).bit_length())
    kind = problem if hard < _BROKER + _FEWEST else warning
    yield kind(
        f"{seen}; {wanted} would be wanted",
        "Beyond it connections wait to be accepted, and files are closed and opened again with each use.",
        f"in the systemd unit: LimitNOFILE={enough}",
        f"in a shell: ulimit -n {enough}; for a user, in /etc/security/limits.conf: leafcuttr hard nofile {enough}",
        f"in a container: ulimits: {{nofile: {enough}}} (compose), --ulimit nofile={enough}",
    )

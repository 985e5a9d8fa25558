"""How the descriptors that connections may have are shared between clients of Kafka and listeners of plugins.

A part of the limit of open files is for neither: for the files of logs, the admin port, the metadata, the loop. Of the
rest listeners of plugins have half by default, and clients of Kafka what plugins do not use, at least a quarter of the
limit. The limit may be changed while the process runs, so it is read each time.
"""

import resource
from typing import Final

# For the metadata, the loop, listeners, the admin port, files that are read by a send after the logs have let go.
_OTHER_DESCRIPTORS: Final = 256
_FEWEST_FILES: Final = 64


def most_of_clients(for_logs: int, of_plugins: int) -> int:
    """Connections of Kafka's listeners, while those of plugins have `of_plugins` and the logs keep `for_logs` files."""
    limit = _limit()
    return max(_for_connections(limit, for_logs) - of_plugins, limit // 4)


def share_of_plugins(for_logs: int) -> int:
    """Connections of all listeners of plugins together that name no number themselves."""
    limit = _limit()
    return max(_for_connections(limit, for_logs) // 2, limit // 5)


def most_of_plugins(for_logs: int) -> int:
    """Connections of all listeners of plugins together, whatever their settings say: beyond it is what the broker keeps
    for its own files, its admin port and its clients. The logs can do with fewer files."""
    limit = _limit()
    kept = limit // 4 + _FEWEST_FILES + _OTHER_DESCRIPTORS
    return max(min(limit // 2, limit - kept), share_of_plugins(for_logs))


def _for_connections(limit: int, for_logs: int) -> int:
    return max(limit - for_logs - _OTHER_DESCRIPTORS, limit // 4)


def _limit() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]

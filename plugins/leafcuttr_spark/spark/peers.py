"""The clusters that a process of Spark has open: they stay open for its next tasks, because to connect costs more than
a small task. They are closed when the process ends.
"""

import atexit
import threading
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import AbstractContextManager
from os import getpid
from typing import Final, NamedTuple

from leafcuttr_sdk.blocking_peers import BlockingPeer, open_peer

_MOST: Final = 8
"""Clusters with different properties; the one that was used longest ago is closed."""
_END_S: Final = 1.0

Properties = frozenset[tuple[str, str]]

_lock: Final = threading.Lock()
_open: Final[OrderedDict[Properties, "_Opened"]] = OrderedDict()


class _Opened(NamedTuple):
    process: int
    manager: AbstractContextManager[BlockingPeer]
    peer: BlockingPeer


def peer_of(properties: Mapping[str, str]) -> BlockingPeer:
    """The cluster that these properties lead to. Raises PluginError for those that cannot be used. Any thread."""
    key = frozenset(properties.items())
    with _lock:
        # A process that was forked has neither the threads nor the connections of the one that opened them.
        for other in [other for other, opened in _open.items() if opened.process != getpid()]:
            del _open[other]
        if key not in _open:
            manager = open_peer(properties)
            _open[key] = _Opened(getpid(), manager, manager.__enter__())
            if len(_open) > _MOST:
                _open.popitem(last=False)[1].manager.__exit__(None, None, None)
        _open.move_to_end(key)
        return _open[key].peer


@atexit.register
def _close() -> None:
    """Python takes modules apart after this, which clients cannot be closed without."""
    # A thread that goes on may have it for as long as a cluster is away.
    if not _lock.acquire(timeout=_END_S):
        return
    for opened in _open.values():
        if opened.process == getpid():
            opened.manager.__exit__(None, None, None)
    _open.clear()
    _lock.release()

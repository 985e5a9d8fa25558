"""The keys of Connect's workers, in which MirrorMaker runs, with what becomes of them here.

They stand behind `TARGET.`, and those that begin with one of `ANYWHERE` also alone. Source: DistributedConfig of Kafka
4.3.1, and MirrorMakerConfig.workerConfig.
"""

from typing import Final

from leafcuttr_forward.mm2.keys import EXACTLY_ONCE, Kind, MirrorKey, Use, Where

ANYWHERE: Final = ("offset.storage", "config.storage", "status.storage", "task", "worker")

_REST: Final = "There is no REST interface of Connect."
_WORKERS: Final = "One process copies all. A second one with the same file stands by."
_STORAGE: Final = "There are no workers that would store it."
_OFFSETS: Final = "Positions are in `leafcuttr-flows` at the target, written with the records."
_CONNECT: Final = "There are no connectors to run."
_PLACES: Final = Where.TOP | Where.CLUSTER | Where.FLOW


def _ignored(name: str, kind: Kind, default: str | None, why: str) -> MirrorKey:
    return MirrorKey(name, kind, default, why, Use.IGNORED, _PLACES)


OFFSETS_TOPIC: Final = MirrorKey(
    "offset.storage.topic",
    Kind.STRING,
    None,
    "The topic at the target with the positions of a MirrorMaker, by default `mm2-offsets.SOURCE.internal`: a flow "
    "that has no position of its own goes on behind those.",
    where=_PLACES,
)
WORKER_KEYS: Final = (
    EXACTLY_ONCE,
    OFFSETS_TOPIC,
    _ignored("access.control.allow.methods", Kind.STRING, "", _REST),
    _ignored("access.control.allow.origin", Kind.STRING, "", _REST),
    _ignored("admin.listeners", Kind.LIST, None, _REST),
    _ignored("config.storage.replication.factor", Kind.SHORT, "3", _STORAGE),
    _ignored("config.storage.topic", Kind.STRING, None, _STORAGE),
    _ignored("connect.protocol", Kind.STRING, "sessioned", _WORKERS),
    _ignored("connector.client.config.override.policy", Kind.STRING, "All", _CONNECT),
    _ignored("inter.worker.key.generation.algorithm", Kind.STRING, "HmacSHA256", _WORKERS),
    _ignored("inter.worker.key.size", Kind.INT, None, _WORKERS),
    _ignored("inter.worker.key.ttl.ms", Kind.INT, "3600000", _WORKERS),
    _ignored("inter.worker.signature.algorithm", Kind.STRING, "HmacSHA256", _WORKERS),
    _ignored("inter.worker.verification.algorithms", Kind.LIST, "HmacSHA256", _WORKERS),
    _ignored("listeners", Kind.LIST, "http://:8083", _REST),
    _ignored("offset.flush.interval.ms", Kind.LONG, "60000", _OFFSETS),
    _ignored("offset.flush.timeout.ms", Kind.LONG, "5000", _OFFSETS),
    _ignored("offset.storage.partitions", Kind.INT, "25", _OFFSETS),
    _ignored("offset.storage.replication.factor", Kind.SHORT, "3", _OFFSETS),
    _ignored("plugin.discovery", Kind.STRING, "hybrid_warn", _CONNECT),
    _ignored("plugin.path", Kind.LIST, None, _CONNECT),
    _ignored("rebalance.timeout.ms", Kind.INT, "60000", _WORKERS),
    _ignored("response.http.headers.config", Kind.STRING, "", _REST),
    _ignored("rest.advertised.host.name", Kind.STRING, None, _REST),
    _ignored("rest.advertised.listener", Kind.STRING, None, _REST),
    _ignored("rest.advertised.port", Kind.INT, None, _REST),
    _ignored("rest.extension.classes", Kind.LIST, "", _REST),
    _ignored("scheduled.rebalance.max.delay.ms", Kind.INT, "300000", _WORKERS),
    _ignored("ssl.client.auth", Kind.STRING, "none", _REST),
    _ignored("status.storage.partitions", Kind.INT, "5", _STORAGE),
    _ignored("status.storage.replication.factor", Kind.SHORT, "3", _STORAGE),
    _ignored("status.storage.topic", Kind.STRING, None, _STORAGE),
    _ignored("task.shutdown.graceful.timeout.ms", Kind.LONG, "5000", _WORKERS),
    _ignored("topic.creation.enable", Kind.BOOLEAN, "true", _CONNECT),
    _ignored("topic.tracking.allow.reset", Kind.BOOLEAN, "true", _CONNECT),
    _ignored("topic.tracking.enable", Kind.BOOLEAN, "true", _CONNECT),
    _ignored("worker.sync.timeout.ms", Kind.INT, "3000", _WORKERS),
    _ignored("worker.unsync.backoff.ms", Kind.INT, "300000", _WORKERS),
)

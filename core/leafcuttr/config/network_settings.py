"""network_settings"""

from typing import Final

from leafcuttr.config.setting import INT, INT_MAX, LIST, LONG, STRING, Setting

SETTINGS: Final[tuple[Setting, ...]] = (
    Setting("advertised.listeners", LIST, None, ""),
    Setting("background.threads", INT, 10, "", minimum=1, dynamic=True),
    Setting("connections.max.idle.ms", LONG, 600_000, "", unit="ms"),
    Setting("early.start.listeners", LIST, None, ""),
    Setting("fetch.max.bytes", INT, 57_671_680, "", unit="bytes", minimum=1024),
    Setting("inter.broker.listener.name", STRING, None, ""),
    Setting(
        "listener.security.protocol.map",
        STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "",
        dynamic=True,
        per_broker=True,
    ),
    Setting("listeners", LIST, ("PLAINTEXT://localhost:9092",), "", dynamic=True, per_broker=True),
    Setting("max.connection.creation.rate", INT, INT_MAX, "", minimum=0, dynamic=True),
    Setting("max.connections", INT, INT_MAX, "", minimum=0, dynamic=True),
    Setting("max.connections.per.ip", INT, INT_MAX, "", minimum=0, dynamic=True),
    Setting("max.connections.per.ip.overrides", STRING, "", "", dynamic=True),
    Setting("max.incremental.fetch.session.cache.slots", INT, 1000, "", minimum=0),
    Setting("max.request.partition.size.limit", INT, 2000, "", minimum=1),
    Setting("num.io.threads", INT, 8, "", minimum=1, dynamic=True),
    Setting("num.network.threads", INT, 3, "", minimum=1, dynamic=True),
    Setting("queued.max.request.bytes", LONG, -1, "", unit="bytes"),
    Setting("queued.max.requests", INT, 500, "", minimum=1),
    Setting("request.timeout.ms", INT, 30_000, "", unit="ms"),
    Setting("socket.connection.setup.timeout.max.ms", LONG, 30_000, "", unit="ms"),
    Setting("socket.connection.setup.timeout.ms", LONG, 10_000, "", unit="ms"),
    Setting("socket.listen.backlog.size", INT, 50, "", minimum=1),
    Setting("socket.receive.buffer.bytes", INT, 102_400, "", unit="bytes"),
    Setting("socket.request.max.bytes", INT, 104_857_600, "", unit="bytes", minimum=1),
    Setting("socket.send.buffer.bytes", INT, 102_400, "", unit="bytes"),
)

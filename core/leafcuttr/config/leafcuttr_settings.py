"""Settings that only LeafCuttr has. Those of bundled plugins (MQTT, HTTP, registry, forwarding) live with
them.
"""

from typing import Final

from leafcuttr.config.setting import BOOLEAN, LONG, Effect, Setting

SETTINGS: Final[tuple[Setting, ...]] = (
    Setting(
        "lc.isolated",
        BOOLEAN,
        True,
        "Run without replication: the high watermark is the end of the log and acks=all means on the log.",
        effect=Effect.NONE,
        reason="there is no replication, so false changes nothing but prints a warning",
    ),
    Setting(
        "lc.log.min.free.bytes",
        LONG,
        64 * 1024 * 1024,
        "Refuse what clients produce when the disk has less room than this, which is kept for the broker itself.",
        unit="bytes",
        minimum=0,
        dynamic=True,
    ),
    Setting(
        "lc.log.sync.always",
        BOOLEAN,
        False,
        "Acknowledge a produce request only when its records are on the disk itself, for every topic.",
        dynamic=True,
    ),
)

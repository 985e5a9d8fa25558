"""Forwarding of topics between clusters: MirrorMaker 2's file, kaf-relay's modes, and mirrors from the command line.

This module is imported at every start, also where nothing is forwarded: it says what there is, and imports nothing
heavy.

    `flows`     the engine: records of topics of one cluster go to topics of another one
    settings    what can be set
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from leafcuttr_sdk.plugin import Plugin

if TYPE_CHECKING:
    from leafcuttr_sdk.settings import Setting

PLUGIN: Final = Plugin(
    name="forward",
    api_version=1,
    summary="Forwards topics from and to other clusters, by MirrorMaker's file or as a relay",
    enabled_by="lc.topic.forward.config",
)


def leafcuttr_register_settings() -> "Iterable[Setting]":
    from leafcuttr_forward.settings import settings

    return settings()

"""Settings of one group, kept as GROUP resources: overrides of the broker's group.consumer.*, share and
streams ones.
"""

from typing import Final

from leafcuttr.config.setting import Effect, Setting

NONE: Final = Effect.NONE
_REASON: Final = "this kind of group comes in a later version"

SETTINGS: Final[tuple[Setting, ...]] = ()

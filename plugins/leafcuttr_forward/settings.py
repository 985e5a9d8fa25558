"""What can be set for the broker. What is forwarded stands in the file that the setting names."""

from collections.abc import Iterable
from typing import Final

from leafcuttr_sdk.settings import Setting, Type

CONFIG: Final = "lc.topic.forward.config"


def settings() -> Iterable[Setting]:
    yield Setting(
        CONFIG,
        Type.STRING,
        None,
        "The file, in MirrorMaker 2's format, that says which topics are forwarded between which clusters.",
    )

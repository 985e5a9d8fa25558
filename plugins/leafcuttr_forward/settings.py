"""What can be set for the broker. What is forwarded stands in the file that the setting names."""

from collections.abc import Iterable
from typing import Final

from leafcuttr_sdk.settings import Setting, SettingFinding, Settings, Type

CONFIG: Final = "lc.topic.forward.config"


def settings() -> Iterable[Setting]:
    yield Setting(
        CONFIG,
        Type.STRING,
        None,
        "The file, in MirrorMaker 2's format, that says which topics are forwarded between which clusters.",
        check_file=_about_the_file,
    )


def _about_the_file(name: str, settings: Settings) -> Iterable[SettingFinding]:
    from leafcuttr_forward.mm2.file import read_file

    return read_file(settings.text(name))[1]

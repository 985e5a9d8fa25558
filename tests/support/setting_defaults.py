"""One setting that keeps its default whatever a test gives it: for `nox -s settings_marks`, and for nothing else.

A process is told by two variables of its environment: the setting, and a file that gets a line for each value that was
dropped. `child_site/sitecustomize.py` patches every interpreter that has them before anything else runs, so that a
broker in the test's own process and one in a child are treated alike. The product knows nothing of it.

What is dropped, wherever its text comes from:

- what a broker is started with (file, environment, `-o`): `Settings._take`;
- what changes while it runs, of this broker or of all, and what the metadata store has of that: `Settings._replace`;
- what a topic has in force, overridden when it was made, altered or read from the metadata store: `TopicConfig`.

A text is parsed first, so that what is refused is refused as ever. With a topic setting goes what gives topics their
default for it; with a setting that listeners have of their own go those; with a family all its members. What plugins
declare for topics is not dropped, so a test that is marked for such a setting would be reported: none of ours is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from leafcuttr.config.catalog import BROKER, CORE, LISTENER_PREFIX, OF_LISTENERS, OF_TOPICS, TOPIC
from leafcuttr.config.setting import ConfigKey, Value
from leafcuttr.config.settings import Given, Settings, parse_given
from leafcuttr.config.topic import TopicConfig

NAME: Final = "LEAFCUTTR_TESTS_DEFAULT_SETTING"
DROPPED: Final = "LEAFCUTTR_TESTS_DROPPED_VALUES"

Note = Callable[[str, str], None]


def kept_at_default() -> str | None:
    """The setting that this process keeps at its default, if it has been patched."""
    return _Patched.name


class _Patched:
    name: str | None = None


def patch_this_process() -> None:
    """As the environment says; nothing without it."""
    name = os.environ.get(NAME)
    if name and _Patched.name is None:
        keep_at_default(name, _note_in(Path(os.environ[DROPPED])))
        _Patched.name = name


def _note_in(path: Path) -> Note:
    def note(way: str, value: str) -> None:
        with path.open("a", encoding="utf-8") as file:  # one write each: several processes share the file
            file.write(f"{way}\t{value!r}\n")

    return note


def is_about(setting: str) -> Callable[[str], bool]:
    """Whether a name is a way to the value of this setting."""
    names = {setting}
    prefixes: list[str] = []
    if setting in TOPIC:
        names.update(name for name, _ in TOPIC[setting].synonyms)
    family = OF_TOPICS.get(setting, setting)
    if family.endswith(">"):
        prefixes.append(family.partition("<")[0])

    def about(name: str) -> bool:
        if name in names or any(name.startswith(prefix) and name not in BROKER for prefix in prefixes):
            return True
        return setting in OF_LISTENERS and name.startswith(LISTENER_PREFIX) and name.endswith(f".{setting}")

    return about


def keep_at_default(setting: str, note: Note) -> None:
    """Patch this process for good. `note` is told each value that is dropped and is not the default anyway.

    Raises LookupError for a name that no setting of the broker, of topics or of the plugins that come with it has.
    """
    if not _is_known(setting):
        raise LookupError(f"{setting} is no setting")
    about = is_about(setting)
    _of_starts(about, note)
    _of_changes(about, note)
    if setting in TOPIC:
        _of_topics(TOPIC[setting], note)


def _is_known(setting: str) -> bool:
    families = {family.name for family in CORE.families.values()}
    if setting in BROKER or setting in TOPIC or setting in families:
        return True
    from leafcuttr.plugins.catalogue import catalog_of
    from leafcuttr.plugins.settings_page import bundled

    found = catalog_of(bundled())
    return setting in found.broker or setting in found.topic


def _of_starts(about: Callable[[str], bool], note: Note) -> None:
    take = Settings._take

    def take_others(self: Settings, name: str, given: Given) -> None:
        setting = self.catalog.broker_setting(name)
        if setting is None or not about(name):
            take(self, name, given)
        elif (value := parse_given(setting, given)) != setting.default:
            note("at the start", f"{name}={value}")

    Settings._take = take_others  # type: ignore[method-assign]


def _of_changes(about: Callable[[str], bool], note: Note) -> None:
    replace = Settings._replace

    def replace_others(
        self: Settings, layer: dict[str, Value], unknown: Mapping[str, str], *, cluster: bool
    ) -> None:
        for name in filter(about, layer):
            setting = self.catalog.broker_setting(name)
            if setting is not None and layer[name] != setting.default:
                note("of all brokers" if cluster else "of this broker", f"{name}={layer[name]}")
        others = {name: value for name, value in layer.items() if not about(name)}
        replace(self, others, unknown, cluster=cluster)

    Settings._replace = replace_others  # type: ignore[method-assign]


def _of_topics(setting: ConfigKey, note: Note) -> None:
    """A topic's value in force, however it came there."""
    make, field = TopicConfig.__init__, setting.name.replace(".", "_")
    default: Any = Settings().topic_default(setting.name)

    def make_with_default(self: TopicConfig, **values: Any) -> None:
        if values[field] != default:
            note("of a topic", f"{setting.name}={values[field]}")
        make(self, **{**values, field: default})

    TopicConfig.__init__ = make_with_default  # type: ignore[method-assign]


def dropped(path: Path, since: int = 0) -> list[str]:
    """The ways on which values came that were dropped, by the notes in `path` from a byte on."""
    text = path.read_bytes()[since:].decode() if path.exists() else ""
    return sorted({line.partition("\t")[0] for line in text.splitlines()})

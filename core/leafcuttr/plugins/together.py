"""Values of a plugin's settings that are allowed alone, and not together: what `Setting.check_with_others` says; and
what there is to say of files that settings name (`Setting.check_file`).

Only plugins that are enabled are asked, once each of their values has been taken.
"""

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from leafcuttr.config.findings import ConfigFinding, Level
from leafcuttr.config.setting import render

if TYPE_CHECKING:
    from leafcuttr.config.settings import Settings
    from leafcuttr.plugins.loaded import Loaded


def contradictions(
    enabled: "Collection[Loaded]", settings: "Settings", wrong: Collection[str | None] = ()
) -> Iterator[ConfigFinding]:
    """What stops the start, and for files also what does not. Plugins in `wrong` are left out: some of their values
    could not be taken."""
    for one in enabled:
        if one.name in wrong or not any(each.check_with_others or each.check_file for each in one.settings):
            continue
        from leafcuttr.plugins.settings_views import plugin_settings

        view = plugin_settings(settings, one.name)
        for name in settings.given_names:
            row = settings.catalog.broker_setting(name)
            if row is None or settings.catalog.owner_of(name) != one.name:
                continue
            value, where = settings.value(name), settings.where(name)
            text = None if row.sensitive else render(value) or ""
            why = row.check_with_others(name, view, value) if row.check_with_others else None
            if why is not None:
                shown = "[hidden]" if text is None else text
                yield ConfigFinding(Level.ERROR, name, text, where, f"{name}={shown} ({where}): {why}")
            for found in row.check_file(name, view, value) if row.check_file else ():
                yield ConfigFinding(Level(found.level.value), name, text, where, found.line)

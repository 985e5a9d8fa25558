"""Values of a plugin's settings that are allowed alone, and not together: what `Setting.check_with_others` says.

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
    """Each stops the start. Plugins in `wrong` are not asked: some of their values could not be taken."""
    from leafcuttr.plugins.settings_views import plugin_settings

    for one in enabled:
        if one.name in wrong or not any(each.check_with_others for each in one.settings):
            continue
        view = plugin_settings(settings, one.name)
        for name in settings.given_names:
            row = settings.catalog.broker_setting(name)
            if row is None or row.check_with_others is None or settings.catalog.owner_of(name) != one.name:
                continue
            value = settings.value(name)
            why = row.check_with_others(name, view, value)
            if why is not None:
                text = None if row.sensitive else render(value) or ""
                shown, where = "[hidden]" if text is None else text, settings.where(name)
                yield ConfigFinding(Level.ERROR, name, text, where, f"{name}={shown} ({where}): {why}")

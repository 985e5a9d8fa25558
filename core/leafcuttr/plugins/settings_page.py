"""The reference page of settings, with those of the plugins that come with LeafCuttr:
`python -m leafcuttr.plugins.settings_page > docs/reference/settings.md`. A test compares the committed page with it.
"""

import sys

from leafcuttr.config.reference import OfPlugin
from leafcuttr.config.reference import page as written
from leafcuttr.plugins.catalogue import catalog_of
from leafcuttr.plugins.finding import Choice, find_plugins
from leafcuttr.plugins.table import Plugins


def bundled() -> Plugins:
    """The plugins that come with LeafCuttr, whether or not the packages that they need are installed."""
    return Plugins([one for one in find_plugins(Choice()).all if one.origin.bundled])


def page() -> str:
    """The whole page, as Markdown."""
    plugins = bundled()
    sections = {section.plugin: section for section in catalog_of(plugins).sections}
    # One that has no settings has nothing to show.
    found = [(one, sections[one.name]) for one in plugins.all if one.settings]
    return written(
        [
            OfPlugin(section, one.plugin.summary, one.remedy if one.plugin.extra else None)
            for one, section in found
            if one.plugin is not None
        ]
    )


if __name__ == "__main__":
    sys.stdout.write(page())

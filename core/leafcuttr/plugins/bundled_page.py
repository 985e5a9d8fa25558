"""The list of the plugins that come with LeafCuttr:
`python -m leafcuttr.plugins.bundled_page > docs/reference/plugins.md`. A test compares the committed page with it.
"""

import sys
from typing import Final

from leafcuttr.plugins.settings_page import bundled
from leafcuttr.plugins.switch import how_to

_HEAD: Final = """\
# Plugins that come with LeafCuttr

They are installed with it, and off until a setting switches them on. An extra brings the packages that a plugin needs;
`pip install 'leafcuttr[all]'` brings those of all but `spark`, whose packages are for programs of Spark and take half a
gigabyte. [Install and run plugins](../how-to/plugins.md) says more, also of plugins from elsewhere; their settings are
on the [page of settings](settings.md).

| plugin | what it does | switched on by | its packages |
|---|---|---|---|
"""


def page_of(name: str) -> str:
    """Where a plugin is described, as a link from here."""
    return f"../how-to/{name}.md"


def page() -> str:
    """The whole page, as Markdown."""
    rows = [
        f"| [`{one.name}`]({page_of(one.name)}) | {one.plugin.summary} "
        f"| {f'`{how_to(one.plugin.enabled_by, one.settings)}`' if one.plugin.enabled_by else 'nothing'} "
        f"| {f'`{one.remedy}`' if one.plugin.extra else 'none'} |\n"
        for one in bundled().all
        if one.plugin is not None
    ]
    return _HEAD + "".join(rows)


if __name__ == "__main__":
    sys.stdout.write(page())

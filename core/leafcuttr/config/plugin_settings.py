"""Settings of the core about plugins: which are left out, where single files of them are, who filters what.

Plugins' own settings are declared with the SDK and come in through `declared`.
"""

from typing import Final

from leafcuttr.config.setting import BOOLEAN, LIST, STRING, Setting

SETTINGS: Final[tuple[Setting, ...]] = (
    Setting(
        "lc.plugins.disabled",
        LIST,
        (),
        "Plugins, by name, that are left out although they are installed; they are not even imported.",
    ),
    Setting(
        "lc.plugins.path",
        STRING,
        None,
        "A folder whose Python files are plugins too, each file one; for those who do not package.",
    ),
    Setting(
        "lc.plugins.strict",
        BOOLEAN,
        False,
        "Do not start when a plugin cannot be imported or registered; otherwise it is left out with a warning.",
    ),
)

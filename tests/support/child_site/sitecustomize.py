"""Run by every interpreter that has this folder on its path: see support.setting_defaults.

A failure ends the interpreter: a broker that honours the setting after all would make a test look better than it is.
"""

import importlib.util
import sys
from pathlib import Path

if importlib.util.find_spec("leafcuttr") is not None:
    sys.path.append(str(Path(__file__).parents[2]))
    try:
        from support.setting_defaults import patch_this_process

        patch_this_process()
    except BaseException as error:
        sys.exit(f"setting_defaults: {type(error).__name__}: {error}")

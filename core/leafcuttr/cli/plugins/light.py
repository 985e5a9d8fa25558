"""What the module of a plugin imports when it is imported, found in a process of its own.

What every broker has imported already costs a start nothing: the SDK, trio, and what trio brings.
"""

import json
import subprocess
import sys
from types import ModuleType
from typing import Final

_LOOK_S: Final = 60.0
_PROGRAM: Final = """
import builtins, json, runpy, sys
sys.path[:0] = {path!r}
import leafcuttr_sdk.hooks, trio

own = ({top!r}, "<run_path>")
light = {{*sys.stdlib_module_names, "leafcuttr_sdk", *own}}
imports = builtins.__import__
found = {{}}

def packages():
    return {{name.partition(".")[0] for name in sys.modules}} - light

def noted(name, globals=None, locals=None, fromlist=(), level=0):
    if level or str((globals or {{}}).get("__name__")).partition(".")[0] not in own:
        return imports(name, globals, locals, fromlist, level)
    had = packages()
    try:
        return imports(name, globals, locals, fromlist, level)
    finally:
        top, new = name.partition(".")[0], packages() - had
        if new or top in packages() - before:
            found.setdefault(name if top in before else top, []).extend(sorted(new - {{top}}))

before = packages()
builtins.__import__ = noted
{statement}
builtins.__import__ = imports
for name in packages() - before - set(found) - {{one for brought in found.values() for one in brought}}:
    found[name] = []
print(json.dumps(found))
"""


def heavy_imports(module: ModuleType, path: list[str]) -> tuple[str, ...]:
    """A problem for each package that it imports and a broker has not, with what that package imports. `path` is where
    modules are that are not installed."""
    name, file = module.__name__, module.__file__
    in_a_file = name.startswith("leafcuttr_plugin_")
    statement = f"runpy.run_path({file!r})" if in_a_file else f"import {name}"
    program = _PROGRAM.format(path=path, statement=statement, top=name.partition(".")[0])
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=_LOOK_S
    )
    if done.returncode or not done.stdout.strip():
        lines = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        return (f"it cannot be imported by itself: {lines[-1]}",)
    found: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return tuple(
        f"to import it imports {package}{_with(brought)}, at every start of a broker, also while the plugin is off: "
        "import it in the function that needs it"
        for package, brought in sorted(found.items())
    )


def _with(brought: list[str]) -> str:
    return f" (which imports {', '.join(brought)})" if brought else ""

# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false
"""The program that Spark starts its workers of Python by, where they are on this machine.

Spark puts zips of PySpark and Py4J in front of a worker's path. They have no bytecode, and no cache is written for what
is in a zip: each worker that is started compiles some 300 modules, which takes a second of the processor. Spark waits
ten seconds for some workers, and on a machine with other work they come too late. The installed PySpark is the same.
"""

import atexit
import shlex
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

_SCRIPT: Final = """#!/bin/sh
set -f
left=
IFS=:
for one in $PYTHONPATH; do
    case $one in
        */python/lib/pyspark.zip | */python/lib/py4j-*-src.zip) ;;
        *) left=${{left:+$left:}}$one ;;
    esac
done
unset IFS
PYTHONPATH=$left exec {python} "$@"
"""
_PATIENCE_S: Final = 60.0


@cache
def worker_python() -> str:
    """A script that starts this Python without the zips; this Python where PySpark is nowhere else, or where scripts of
    the folder for temporary files cannot be run. It is removed with this process."""
    if not all(_is_installed(name) for name in ("pyspark", "py4j")):
        return sys.executable
    try:
        folder = tempfile.mkdtemp(prefix="leafcuttr-spark-")
    except OSError:
        return sys.executable
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    script = Path(folder, "python")
    try:
        script.write_text(_SCRIPT.format(python=shlex.quote(sys.executable)))
        script.chmod(0o700)
        subprocess.run(
            [str(script), "-c", ""],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_PATIENCE_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return sys.executable
    return str(script)


def _is_installed(name: str) -> bool:
    """As files, not within a zip."""
    spec = find_spec(name)
    return spec is not None and spec.origin is not None and Path(spec.origin).is_file()

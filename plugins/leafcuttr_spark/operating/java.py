"""Whether there is a Java that Spark runs on."""

import os
import re
import shutil
import subprocess
from typing import Final

LEAST: Final = 17
_WAIT_S: Final = 30.0


def java_trouble() -> str | None:
    """What is wrong with the Java that PySpark would start, in one line; None if it will do. Blocks."""
    home = os.environ.get("JAVA_HOME")
    program = f"{home}/bin/java" if home else shutil.which("java")
    mend = f"install one, as openjdk-{LEAST}-jre-headless, or let JAVA_HOME name its folder"
    if program is None:
        return f"Spark needs Java {LEAST} or later, and there is none: {mend}"
    try:
        said = subprocess.run(
            [program, "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_WAIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        why = (
            "it does not answer"
            if isinstance(error, subprocess.TimeoutExpired)
            else error.strerror or str(error)
        )
        return f"Spark needs Java {LEAST} or later, and {program} cannot be run ({why}): {mend}"
    version = version_of(said.stderr + said.stdout)
    if version is None or version < LEAST:
        found = "something else" if version is None else f"Java {version}"
        return f"Spark needs Java {LEAST} or later, and {program} is {found}: {mend}"
    return None


def version_of(said: str) -> int | None:
    """The number of the version, 8 for `1.8.0_392`."""
    match = re.search(r'version "(?:1\.)?([0-9]+)', said)
    return int(match[1]) if match else None

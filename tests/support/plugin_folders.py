"""Plugins on disk, as pip leaves them: a module beside a `.dist-info` folder that names it as an entry point."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

SOUND = """
from leafcuttr_sdk.plugin import Plugin

PLUGIN = Plugin(name={name!r}, api_version=1, summary="Does nothing.")
"""


def install(
    site: Path,
    name: str = "acme",
    source: str | None = None,
    *,
    distribution: str | None = None,
    version: str = "1.2",
    entry: str | None = None,
) -> Path:
    """A distribution in the folder `site`, whose entry point `name` names a module with this source (of a plugin that
    does nothing, if left out). Returns the module's file."""
    module = f"{name.replace('-', '_')}_plugin"
    file = site / f"{module}.py"
    site.mkdir(parents=True, exist_ok=True)
    file.write_text(dedent(source if source is not None else SOUND.format(name=name)))
    distribution = distribution or f"leafcuttr-{name}"
    info = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n\nName: no\n"
    )
    text = f"[console_scripts]\nacme = acme:main\n\n[leafcuttr.plugins]\n{name} = {entry or module}\n"
    (info / "entry_points.txt").write_text(text)
    return file

"""`leafcuttr plugins new`: a small project of a plugin, which can be installed and whose tests pass as it is.

The files are in `template/`, as they will be but for the words between `@`.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from leafcuttr.cli.common.failures import Failure
from leafcuttr.cli.common.output import count, json_option, print_json

_TEMPLATE: Final = Path(__file__).parent / "template"
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*\Z")
_WORD: Final = re.compile(r"@([a-z_]+)@")


@click.command(short_help="Write a small project of a plugin, with tests.")
@click.argument("name")
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIRECTORY",
    help="The folder for the files; by default one with the name of the plugin.",
)
@json_option
def new(name: str, into: Path | None, as_json: bool) -> None:
    """Write a small project of a plugin: a service, a record filter, a command, settings, tests that pass, a README.

    NAME is the plugin's: lower-case letters, digits and single dashes. The distribution will be leafcuttr-NAME, the
    package leafcuttr_NAME, and the names of its settings begin with lc.plugin.NAME. No existing file is
    overwritten. Exit status: 0 written, 1 the files cannot be written, 2 wrong usage.

    \b
    Examples:
      leafcuttr plugins new parcel-watch
      leafcuttr plugins new parcel-watch --into parcels --json
    """
    _check(name)
    folder = into if into is not None else Path(name)
    files = dict(render(name))
    try:
        if folder.exists() and any(folder.iterdir()):
            raise Failure(f"{folder} is not empty: choose another with --into, or empty it")
        for path, text in files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Failure(f"cannot write {error.filename or folder}: {error.strerror}") from None
    if as_json:
        print_json({"name": name, "path": str(folder.absolute()), "files": sorted(files)})
        return
    click.echo(f"wrote the plugin {name}: {count(len(files), 'file')} in {folder}")
    click.echo(f"next: cd {folder} && pip install -e '.[test]' && pytest && leafcuttr plugins check {name}")


def render(name: str) -> Iterator[tuple[str, str]]:
    """The files of the project, by their paths in it."""
    from leafcuttr.version import __version__
    from leafcuttr_sdk.plugin import API_VERSION

    module = name.replace("-", "_")
    words = {
        "name": name,
        "package": f"leafcuttr_{module}",
        "metric": module,
        "version": _required(__version__),
        "api_version": str(API_VERSION),
    }

    def filled(text: str) -> str:
        return _WORD.sub(lambda found: words[found[1]], text)

    for source in sorted(_TEMPLATE.rglob("*.in")):
        path = source.relative_to(_TEMPLATE).as_posix().removesuffix(".in")
        yield filled(path), filled(source.read_text(encoding="utf-8"))


def _required(version: str) -> str:
    """The least version that a new plugin requires: MAJOR.MINOR, but all of a version that is not released, because
    0.7 comes after 0.7.0.dev0."""
    return version if "dev" in version else ".".join(version.split(".")[:2])


def _check(name: str) -> None:
    """Raises click.UsageError for what cannot be a plugin's name."""
    if _NAME.match(name):
        if name.startswith("leafcuttr-"):
            raise click.UsageError(
                f"{name} cannot be its name: leafcuttr- comes before it by itself; did you mean "
                f"{name.removeprefix('leafcuttr-')}?"
            )
        return
    meant = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-").lstrip("0123456789-")
    hint = f"; did you mean {meant}?" if _NAME.match(meant) else ""
    raise click.UsageError(
        f"{name!r} cannot be its name: lower-case letters, digits and single dashes, beginning with a letter{hint}"
    )

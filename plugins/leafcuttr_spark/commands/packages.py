"""`leafcuttr spark package`."""

from pathlib import Path

import click

from leafcuttr_sdk.cli import command_context


@click.command("package", short_help="Make the archive that executors need.")
@click.option(
    "--module", "modules", multiple=True, metavar="NAME", help="A module of your own too; may be repeated."
)
@click.argument("archive", type=click.Path(path_type=Path), default="leafcuttr.tar.gz", metavar="[ARCHIVE]")
def package(archive: Path, modules: tuple[str, ...]) -> None:
    """Make an archive (tar.gz) of what tasks of a pipeline import, for executors where LeafCuttr is not installed.

    It is taken from the environment that this runs in; executors need the same version of Python and the same kind of
    machine. Spark gives it to executors by two settings of `session: config:` in the file of the pipeline:
    `spark.archives: leafcuttr.tar.gz#leafcuttr` and `spark.executorEnv.PYTHONPATH: leafcuttr`.

    \b
    Examples:
      leafcuttr spark package
      leafcuttr spark package /srv/leafcuttr.tar.gz --module shop.functions

    Exit status: 0 if it was written; 1 if a package or module is not there, or the file cannot be written; 2 for wrong
    usage.
    """
    from leafcuttr_spark.operating.packaging import PackagingError, write_archive

    context = command_context()
    if not archive.name.endswith((".tar.gz", ".tgz")):
        raise click.UsageError(
            f"{archive}: allowed are names that end with .tar.gz or .tgz, by which Spark unpacks it"
        )
    try:
        count = write_archive(archive, modules)
    except (PackagingError, OSError) as error:
        context.fail(str(error))
    size = archive.stat().st_size / (1 << 20)
    context.print_line(f"{archive}: {count} files, {size:.0f} MiB")

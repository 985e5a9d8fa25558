"""The option `--data` of commands that change what is stored of users, ACLs or quotas: in a running cluster, or in the
data directory of a broker that does not run."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from leafcuttr.cli.common.options.target import target_options
from leafcuttr.cli.common.target import Target


def store_options(
    of_cluster: Callable[[Target], object], of_directory: Callable[[Path], object]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """`--data`, or the options that say which brokers; as the argument `store`, which one of the two makes."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @target_options
        @click.option(
            "--data",
            type=click.Path(path_type=Path, file_okay=False),
            metavar="DIRECTORY",
            help="The data directory of a broker that does not run, in the place of a running one.",
        )
        @functools.wraps(function)
        def with_store(*, target: Target, data: Path | None, **rest: Any) -> None:
            function(store=of_cluster(target) if data is None else of_directory(data), **rest)

        return with_store

    return decorate

"""`leafcuttr schemas`: look at the schemas of any registry, register, check, compare, delete, copy them."""

import click

from leafcuttr_registry.people.command.asking import list_subjects, show
from leafcuttr_registry.people.command.changing import config, delete, mode
from leafcuttr_registry.people.command.comparing import check, diff
from leafcuttr_registry.people.command.copying import export, import_schemas
from leafcuttr_registry.people.command.registering import register


@click.group("schemas")
def schemas() -> None:
    """Look at the schemas of a registry, and change them.

    It is any registry with Confluent's API: --registry, or the variable LEAFCUTTR_SCHEMA_REGISTRY_URL, says where it
    is, http://localhost:8081 without them.
    """


for _command in (list_subjects, show, register, check, diff, delete, mode, config, export, import_schemas):
    schemas.add_command(_command)

"""`schemas register`."""

import click

from leafcuttr_registry.people.client import RegistryClient, subject_path
from leafcuttr_registry.people.command.options import registry_options, schema_options
from leafcuttr_registry.people.files import body_of
from leafcuttr_sdk.cli import command_context


@click.command("register", short_help="Add a schema to a subject.")
@click.argument("subject")
@click.argument("file")
@schema_options
@click.option("--normalize", is_flag=True, help="Without differences that mean nothing.")
@registry_options
def register(
    client: RegistryClient,
    subject: str,
    file: str,
    type: str | None,
    references: tuple[str, ...],
    normalize: bool,
) -> None:
    """Add the schema of a file to a subject, and print its id; `-` reads the standard input. A schema that the subject
    has already keeps its id.

    Exit status: 0 done, 1 it is refused, 2 wrong usage.

    \b
    Examples:
      leafcuttr schemas register orders-value orders.avsc
      leafcuttr schemas register orders-value orders.proto --reference shop/item.proto=items
    """
    context = command_context()
    body = body_of(file, type, references)
    answer = client.post(subject_path(subject, "versions"), body, normalize=normalize or None)
    if context.as_json:
        context.print_json(answer)
    else:
        context.print_line(str(answer["id"]))

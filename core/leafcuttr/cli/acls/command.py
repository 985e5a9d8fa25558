"""`leafcuttr acls`: what `kafka-acls.sh` does, and which rule decides."""

import functools
from collections.abc import Callable
from typing import Any

import click

from leafcuttr.cli.acls.selection import (
    NamedResource,
    check_fits,
    fields_of,
    filters_of,
    operations_of,
    principal_of,
    resource_options,
    row,
)
from leafcuttr.cli.acls.stored import ALLOW, SUPER_USERS, AclsOfCluster, AclsOfDirectory, AclStore
from leafcuttr.cli.common.options.store import store_options
from leafcuttr.cli.common.output import json_option, print_json, print_table
from leafcuttr.config.checks import principals_of
from leafcuttr.state.security.acl import Acl, AclFilter, AclPermission

_HEAD = ("PRINCIPAL", "PERMISSION", "OPERATION", "RESOURCE", "NAME", "HOST")
_store_options = store_options(AclsOfCluster, AclsOfDirectory)


def _filter_options(function: Callable[..., None]) -> Callable[..., None]:
    """What chooses among the ACLs that there are, as `filters`."""

    @resource_options
    @click.option("--principal", metavar="TYPE:NAME", help="Of this principal.")
    @click.option("--operation", "operations", multiple=True, metavar="NAME", help="Of this operation.")
    @click.option("--host", metavar="ADDRESS", help="From this address.")
    @click.option("--allow/--deny", default=None, help="Of these only.")
    @functools.wraps(function)
    def with_filters(
        *,
        resources: list[NamedResource],
        principal: str | None,
        operations: tuple[str, ...],
        host: str | None,
        allow: bool | None,
        **rest: Any,
    ) -> None:
        permission = AclPermission.ANY
        if allow is not None:
            permission = AclPermission.ALLOW if allow else AclPermission.DENY
        who = None if principal is None else principal_of(principal)
        function(filters=filters_of(resources, who, operations_of(operations), host, permission), **rest)

    return with_filters


@click.group()
def command() -> None:
    """Add, remove, list and check ACLs: who may do what.

    They act where authorizer.class.name names an authorizer.

    Exit status: 0 done, 1 denied, refused, or no broker answers, 2 wrong usage or a directory that is in use.
    """


@command.command(short_help="Add ACLs.")
@_store_options
@resource_options
@click.option("--host", default="*", metavar="ADDRESS", help="From this address only.")
@click.option("--deny", is_flag=True, help="Deny it, whatever else allows it.")
@click.argument("principal", metavar="PRINCIPAL")
@click.argument("operations", nargs=-1, required=True, metavar="OPERATION...")
def add(
    store: AclStore,
    resources: list[NamedResource],
    host: str,
    deny: bool,
    principal: str,
    operations: tuple[str, ...],
) -> None:
    """Let a principal do something, or deny it.

    PRINCIPAL is alice or User:alice; User:* is everybody. To allow read, write, delete or alter allows describe too.

    \b
    Examples:
      leafcuttr acls add alice write --topic orders
      leafcuttr acls add alice read --topic orders --group billing
      leafcuttr acls add 'User:*' read --topic public. --prefixed
      leafcuttr acls add bob all --topic orders --deny --data leafcuttr-data
    """
    if not resources:
        raise click.UsageError("what for? --topic, --group, --cluster, ...")
    who = principal_of(principal)
    permission = AclPermission.DENY if deny else AclPermission.ALLOW
    acls = []
    for resource in resources:
        for operation in operations_of(operations):
            # `read` is for the topic and the group of a consumer alike; of several one need not know all.
            check_fits(resource, operation)
            acls.append(
                Acl(
                    resource.resource_type,
                    resource.name,
                    resource.pattern_type,
                    who,
                    host,
                    operation,
                    permission,
                )
            )
    store.add(acls)
    for acl in acls:
        click.echo(f"added: {acl}")


@command.command(short_help="Remove ACLs.")
@_store_options
@_filter_options
def remove(store: AclStore, filters: list[AclFilter]) -> None:
    """Remove all ACLs that fit what is named.

    \b
    Examples:
      leafcuttr acls remove --principal alice --topic orders
      leafcuttr acls remove --principal alice
    """
    if filters == [AclFilter()]:
        raise click.UsageError("which ones? --principal, --topic, ...")
    for acl in store.remove(filters):
        click.echo(f"removed: {acl}")


@command.command("list", short_help="List ACLs.")
@_store_options
@_filter_options
@json_option
def list_acls(store: AclStore, filters: list[AclFilter], as_json: bool) -> None:
    """List the ACLs, or those that fit what is named.

    \b
    Examples:
      leafcuttr acls list --topic orders
      leafcuttr acls list --json
    """
    found = sorted(dict.fromkeys(acl for wanted in filters for acl in store.acls(wanted)))
    if as_json:
        print_json([fields_of(acl) for acl in found])
    else:
        print_table(_HEAD, map(row, found))


@command.command(short_help="Say whether something is allowed, and which rule decides.")
@_store_options
@resource_options
@click.option(
    "--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="The client's address."
)
@click.argument("principal", metavar="PRINCIPAL")
@click.argument("operation", metavar="OPERATION")
@click.pass_context
def check(
    context: click.Context,
    store: AclStore,
    resources: list[NamedResource],
    host: str,
    principal: str,
    operation: str,
) -> None:
    """Say whether a principal may do something, and which rule decides. Exit status 1: it may not.

    \b
    Examples:
      leafcuttr acls check alice write --topic orders
    """
    from leafcuttr.state.security.acl_rules import AclRules

    if not resources:
        raise click.UsageError("on what? --topic, --group, --cluster, ...")
    (wanted,) = operations_of((operation,))
    settings = store.settings()
    rules = AclRules(
        store.acls(AclFilter()),
        principals_of(settings.get(SUPER_USERS)),
        allow_if_no_acl=settings.get(ALLOW) == "true",
    )
    denied = False
    for resource in resources:
        check_fits(resource, wanted)
        verdict = rules.verdict(principal_of(principal), host, wanted, resource.resource_type, resource.name)
        denied |= not verdict.allowed
        click.echo(f"{'allowed' if verdict.allowed else 'denied'}: {resource.name}: {verdict.rule}")
    context.exit(1 if denied else 0)

"""The options that say which resource, principal and operations are meant, and ACLs as people read them."""

import functools
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar, cast

import click

from leafcuttr.state.security.acl import (
    CLUSTER_NAME,
    OPERATIONS_ON,
    Acl,
    AclFilter,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
)

F = TypeVar("F", bound=Callable[..., Any])

_TYPES: Final = {
    "topic": AclResourceType.TOPIC,
    "group": AclResourceType.GROUP,
    "transactional_id": AclResourceType.TRANSACTIONAL_ID,
    "delegation_token": AclResourceType.DELEGATION_TOKEN,
    "user": AclResourceType.USER,
}
_WORDS: Final = {
    "topic": "A topic.",
    "group": "A consumer group.",
    "transactional_id": "A transactional id.",
    "delegation_token": "A delegation token.",
    "user": "A user whose tokens are meant, as User:alice.",
}
OPERATIONS: Final = {
    one.name.lower().replace("_", "-"): one for one in AclOperation if one > AclOperation.ANY
}


class NamedResource(NamedTuple):
    """What an ACL is for: one name, or all that begin with it."""

    resource_type: AclResourceType
    name: str
    pattern_type: PatternType = PatternType.LITERAL


def resource_options(function: F) -> F:
    """`--topic`, `--group` and so on, `--cluster` and `--prefixed`, as `resources`."""

    @functools.wraps(function)
    def with_resources(*, cluster: bool, prefixed: bool, **rest: Any) -> Any:
        pattern = PatternType.PREFIXED if prefixed else PatternType.LITERAL
        found = [
            NamedResource(kind, name, pattern) for option, kind in _TYPES.items() for name in rest.pop(option)
        ]
        if "" in (one.name for one in found):
            raise click.UsageError("the name of a resource is empty")
        if cluster:
            found.append(NamedResource(AclResourceType.CLUSTER, CLUSTER_NAME))
        return function(resources=found, **rest)

    decorated: Any = with_resources
    for option in reversed(_TYPES):
        flag = f"--{option.replace('_', '-')}"
        decorated = click.option(
            flag, option, multiple=True, metavar="NAME", help=f"{_WORDS[option]} May be given again."
        )(decorated)
    decorated = click.option("--cluster", is_flag=True, help="The cluster.")(decorated)
    decorated = click.option(
        "--prefixed", is_flag=True, help="All whose names begin with these, in the place of these."
    )(decorated)
    return cast(F, decorated)


def principal_of(text: str) -> str:
    """`alice` is `User:alice`. Raises click.UsageError."""
    kind, colon, name = text.partition(":")
    if not colon:
        kind, name = "User", text
    if not kind or not name:
        raise click.UsageError(f"{text}: not a principal, such as User:alice")
    return f"{kind}:{name}"


def operations_of(words: tuple[str, ...]) -> list[AclOperation]:
    """Raises click.UsageError."""
    unknown = [word for word in words if _spelt(word) not in OPERATIONS]
    if unknown:
        raise click.UsageError(f"{unknown[0]}: no operation; there are {', '.join(OPERATIONS)}")
    return [OPERATIONS[_spelt(word)] for word in words]


def check_fits(resource: NamedResource, operation: AclOperation) -> None:
    """Raise click.UsageError for an operation that nothing of this type knows."""
    known = OPERATIONS_ON[resource.resource_type]
    if operation != AclOperation.ALL and not known >> operation & 1:
        names = ", ".join(word for word, one in OPERATIONS.items() if known >> one & 1)
        raise click.UsageError(
            f"{_word(operation)} means nothing for a {resource.resource_type.name.lower()}; there are {names}"
        )


def filters_of(
    resources: list[NamedResource],
    principal: str | None,
    operations: list[AclOperation],
    host: str | None,
    permission: AclPermission,
) -> list[AclFilter]:
    """One for each resource and operation; none of either means any."""
    return [
        AclFilter(
            resource.resource_type,
            resource.name or None,
            resource.pattern_type,
            principal,
            host,
            each,
            permission,
        )
        for resource in resources or [NamedResource(AclResourceType.ANY, "", PatternType.ANY)]
        for each in operations or [AclOperation.ANY]
    ]


def row(acl: Acl) -> tuple[str, ...]:
    """As a line of a table."""
    return (
        acl.principal,
        acl.permission.name.lower(),
        _word(acl.operation),
        acl.resource_type.name.lower().replace("_", "-"),
        acl.name + ("..." if acl.pattern_type == PatternType.PREFIXED else ""),
        acl.host,
    )


def fields_of(acl: Acl) -> dict[str, str]:
    return {
        "principal": acl.principal,
        "permission": acl.permission.name,
        "operation": acl.operation.name,
        "resource_type": acl.resource_type.name,
        "pattern_type": acl.pattern_type.name,
        "resource_name": acl.name,
        "host": acl.host,
    }


def _spelt(word: str) -> str:
    """As we spell it: kafka-acls.sh knows DescribeConfigs too, but that spelling has no place to cut."""
    return word.lower().replace("_", "-")


def _word(operation: AclOperation) -> str:
    return operation.name.lower().replace("_", "-")

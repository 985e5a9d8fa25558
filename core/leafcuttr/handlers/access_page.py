"""The reference page of rights, made from the table: `python -m leafcuttr.handlers.access_page` prints it."""

import sys

from leafcuttr.handlers.access_table import NEEDS, Need
from leafcuttr.state.security.acl import OPERATIONS_ON, AclOperation, AclResourceType
from leafcuttr.wire.api import APIS

_HEAD = """\
# Rights

<!-- Written by `python -m leafcuttr.handlers.access_page`; a test fails when this page and the code differ. -->

What each request needs where [an authorizer](../how-to/acls.md) decides, as in Apache Kafka 4.3. Of rights with "or"
between them one suffices. A request that lacks one gets TOPIC_, GROUP_, CLUSTER_ or
TRANSACTIONAL_ID_AUTHORIZATION_FAILED.

| Request | Right |
|---------|-------|
"""
_OPERATIONS = """
## Operations

What an ACL can be about, by the type of the resource; `all` is all of them.

| Resource | Operations |
|----------|------------|
"""


def access_page() -> str:
    """The whole page, in Markdown."""
    rows = "".join(_row(APIS[key].name, needs) for key, needs in sorted(NEEDS.items()))
    return _HEAD + rows + _OPERATIONS + "".join(map(_operations, OPERATIONS_ON))


def _row(api: str, needs: tuple[Need, ...]) -> str:
    return f"| {api} | {'<br>'.join(map(_need, needs)) or 'none'} |\n"


def _need(need: Need) -> str:
    rights = " or ".join(map(str, need.rights))
    return f"{rights} ({need.words})" if need.words else rights


def _operations(resource_type: AclResourceType) -> str:
    names = ", ".join(one.name for one in AclOperation if OPERATIONS_ON[resource_type] >> one & 1)
    return f"| {resource_type.name} | {names} |\n"


if __name__ == "__main__":
    sys.stdout.write(access_page())

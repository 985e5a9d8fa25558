"""ACLs and filters as requests carry them."""

from __future__ import annotations

import pytest

from leafcuttr.errors import InvalidRequest
from leafcuttr.handlers.acl_filters import filter_of, known
from leafcuttr.state.security.acl import AclFilter, AclOperation, AclPermission, AclResourceType, PatternType
from leafcuttr.wire.messages.describe_acls import DescribeAclsRequest


def test_a_filter() -> None:
    request = DescribeAclsRequest(
        resource_type_filter=2,
        resource_name_filter="orders",
        pattern_type_filter=2,
        principal_filter=None,
        host_filter="*",
        operation=3,
        permission_type=1,
    )
    assert filter_of(request) == AclFilter(
        AclResourceType.TOPIC, "orders", PatternType.MATCH, None, "*", AclOperation.READ, AclPermission.ANY
    )


@pytest.mark.parametrize("number", [0, -1, 16, 127])
def test_numbers_that_are_none(number: int) -> None:
    with pytest.raises(InvalidRequest, match=f"Unknown AclOperation {number}"):
        known(AclOperation, number)

"""Users of a broker behind the HTTP proxy, their rights, and what a client reads that lacks one."""

from __future__ import annotations

import httpx

from leafcuttr.state.security.acl import (
    Acl,
    AclFilter,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
)
from leafcuttr.state.security.credentials import ScramMechanism
from leafcuttr.state.security.scram import new_credential
from leafcuttr.state.security.users import CredentialUpsertion
from support.http_proxy import Running

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SHA256 = ScramMechanism.SCRAM_SHA_256
ALICE, BOB = ("alice", "tea"), ("bob", "milk")


async def user(proxy: Running, name: str, password: str) -> None:
    credential = new_credential(SHA256, password.encode(), 4096)
    await proxy.core.users.alter([CredentialUpsertion(name, SHA256, credential)], [])


async def grant(proxy: Running, *rights: str, principal: str = "User:alice") -> None:
    """Each as `READ TOPIC t`."""
    authorizer = proxy.core.authorizer
    assert authorizer is not None and authorizer.acls is not None
    await authorizer.acls.create(
        [
            Acl(
                AclResourceType[kind],
                name,
                PatternType.LITERAL,
                principal,
                "*",
                AclOperation[operation],
                AclPermission.ALLOW,
            )
            for operation, kind, name in map(str.split, rights)
        ]
    )


async def revoke(proxy: Running) -> None:
    authorizer = proxy.core.authorizer
    assert authorizer is not None and authorizer.acls is not None
    await authorizer.acls.delete([AclFilter()])


def refused(answer: httpx.Response, words: str) -> None:
    assert answer.status_code == 403, answer.text
    assert answer.json() == {"error_code": 40301, "message": words}

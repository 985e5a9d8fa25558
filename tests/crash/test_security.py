"""A process is killed at each point of a change of users, delegation tokens, ACLs and quotas: what it has reported is
there, and of the change at hand all or nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.config.settings import Settings
from leafcuttr.state.metadata import MetadataStore
from leafcuttr.state.security.acls import Acls
from leafcuttr.state.security.delegation_tokens import DelegationTokens
from leafcuttr.state.security.quotas import Quotas
from leafcuttr.state.security.users import Users
from support.logs import HandClock

SECRET = {"delegation.token.secret.key": "sesame"}
# Each change is reported once its call has returned: the names of users, each token with its end, ACLs, quotas.
PROGRAM = """
import json, sys, trio
from pathlib import Path
from leafcuttr.config.settings import Settings
from leafcuttr.state.identity import Principal
from leafcuttr.state.metadata import MetadataStore
from leafcuttr.state.security.acl import Acl, AclFilter, AclOperation, AclPermission, PatternType, AclResourceType
from leafcuttr.state.security.acls import Acls
from leafcuttr.state.security.credentials import ScramCredential, ScramMechanism
from leafcuttr.state.security.delegation_tokens import DelegationTokens
from leafcuttr.state.security.quota_entities import entity_of
from leafcuttr.state.security.quotas import Quotas
from leafcuttr.state.security.users import CredentialDeletion, CredentialUpsertion, Users
from support.logs import HandClock

def acl(number, principal):
    topic, literal = AclResourceType.TOPIC, PatternType.LITERAL
    return Acl(topic, f"t{number}", literal, principal, "*", AclOperation.READ, AclPermission.ALLOW)

async def main():
    metadata = MetadataStore.open(Path(sys.argv[1]))
    users, owner = Users(metadata), Principal("User", "alice")
    tokens = DelegationTokens(metadata, Settings({"delegation.token.secret.key": "sesame"}), HandClock())
    acls, quotas = Acls(metadata), Quotas(metadata, Settings())
    kind, credential = ScramMechanism.SCRAM_SHA_256, ScramCredential(b"s", b"k", b"v", 4096)

    def report():
        held = {str(entity): dict(values) for entity, values in quotas.entries().items() if values}
        print(json.dumps([users.names(), {one.id: one.expires_ms for one in tokens}, sorted(map(str, acls)), held]),
            flush=True)

    report()
    for number in range(4):
        pair = [CredentialUpsertion(f"{number}{end}", kind, credential) for end in "ab"]
        await users.alter(pair, [])
        report()
        token = await tokens.create(owner, owner, [], 0)
        report()
        await tokens.renew(token, 1000 + number)
        report()
        await acls.create([acl(number, "User:a"), acl(number, "User:b")])
        report()
        both = [entity_of({"user": f"{number}{end}"}) for end in "ab"]
        await quotas.alter({each: {"producer_byte_rate": 1.0 + number, "request_percentage": 5.0} for each in both})
        report()
        if number % 2:
            await tokens.remove([token])
            report()
            await users.alter([], [CredentialDeletion(f"{number}a", kind), CredentialDeletion(f"{number}b", kind)])
            report()
            await acls.delete([AclFilter(name=f"t{number}")])
            report()
            await quotas.alter({each: {"producer_byte_rate": None, "request_percentage": None} for each in both})
            report()

trio.run(main)
"""
CHANGES = 4 * 5 + 2 * 4


@pytest.mark.one_in(14)
@pytest.mark.parametrize("point", ["metadata.before-commit", "metadata.committed"])
@pytest.mark.parametrize("number", range(1, CHANGES + 1))
def test_what_was_acknowledged_is_there(tmp_path: Path, point: str, number: int) -> None:
    armed = {**os.environ, "LEAFCUTTR_CRASH_POINT": f"{point}:{number}"}
    paths = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        env={**armed, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -9, done.stderr
    reported = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(reported) == number
    now = found(tmp_path)
    if point == "metadata.before-commit":
        assert now == reported[-1]
    else:
        assert now != reported[-1], "it is on the disk, though nobody has heard of it"
    names, _, acls, quotas = now
    assert all(len(each) % 2 == 0 for each in (names, acls, quotas)), "two of each change together"


def found(directory: Path) -> list[Any]:
    metadata = MetadataStore.open(directory)
    try:
        tokens = DelegationTokens(metadata, Settings(SECRET), HandClock())
        quotas = Quotas(metadata, Settings(), lambda: 0.0)
        held = {str(entity): dict(values) for entity, values in quotas.entries().items()}
        acls = sorted(map(str, Acls(metadata)))
        return [Users(metadata).names(), {one.id: one.expires_ms for one in tokens}, acls, held]
    finally:
        metadata.close()

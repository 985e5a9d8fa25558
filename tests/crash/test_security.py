"""A process is killed at each point of a change of users and of delegation tokens: what it has reported is there, and
of the change at hand all or nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from leafcuttr.config.settings import Settings
from leafcuttr.state.metadata import MetadataStore
from leafcuttr.state.security.delegation_tokens import DelegationTokens
from leafcuttr.state.security.users import Users
from support.logs import HandClock

SECRET = {"delegation.token.secret.key": "sesame"}
# Each change is reported once its call has returned: the names of users, and each token with its end.
PROGRAM = """
import json, sys, trio
from pathlib import Path
from leafcuttr.config.settings import Settings
from leafcuttr.state.identity import Principal
from leafcuttr.state.metadata import MetadataStore
from leafcuttr.state.security.credentials import ScramCredential, ScramMechanism
from leafcuttr.state.security.delegation_tokens import DelegationTokens
from leafcuttr.state.security.users import CredentialDeletion, CredentialUpsertion, Users
from support.logs import HandClock

async def main():
    metadata = MetadataStore.open(Path(sys.argv[1]))
    users, owner = Users(metadata), Principal("User", "alice")
    tokens = DelegationTokens(metadata, Settings({"delegation.token.secret.key": "sesame"}), HandClock())
    kind, credential = ScramMechanism.SCRAM_SHA_256, ScramCredential(b"s", b"k", b"v", 4096)

    def report():
        print(json.dumps([users.names(), {one.id: one.expires_ms for one in tokens}]), flush=True)

    report()
    for number in range(4):
        pair = [CredentialUpsertion(f"{number}{end}", kind, credential) for end in "ab"]
        await users.alter(pair, [])
        report()
        token = await tokens.create(owner, owner, [], 0)
        report()
        await tokens.renew(token, 1000 + number)
        report()
        if number % 2:
            await tokens.remove([token])
            report()
            await users.alter([], [CredentialDeletion(f"{number}a", kind), CredentialDeletion(f"{number}b", kind)])
            report()

trio.run(main)
"""
CHANGES = 4 * 3 + 2 * 2


@pytest.mark.one_in(8)
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
    names, tokens = found(tmp_path)
    if point == "metadata.before-commit":
        assert [names, tokens] == reported[-1]
    else:
        assert [names, tokens] != reported[-1], "it is on the disk, though nobody has heard of it"
        assert len(names) % 2 == 0, "two users change together"


def found(directory: Path) -> tuple[list[str], dict[str, int]]:
    metadata = MetadataStore.open(directory)
    try:
        tokens = DelegationTokens(metadata, Settings(SECRET), HandClock())
        return Users(metadata).names(), {one.id: one.expires_ms for one in tokens}
    finally:
        metadata.close()

"""The file of names and hashes, the command that writes it, and the contract of its authenticator."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import trio
from click.testing import CliRunner, Result

import leafcuttr_http
from leafcuttr.cli.root import cli
from leafcuttr_http import passwords
from leafcuttr_sdk import Authenticated, NameAndPassword, PluginError, Refused
from leafcuttr_sdk.testing import HandClock, check_authenticator, fixed_settings
from support.waiting import within


def run(*words: str, stdin: str = "") -> Result:
    return CliRunner().invoke(cli, ["http", "passwd", *words], input=stdin)


def test_the_command_writes_what_is_read(tmp_path: Path) -> None:
    file = tmp_path / "passwords"
    assert run(str(file), "alice", stdin="sesame\nsesame\n").exit_code == 0
    assert run(str(file), "bob", "--stdin", stdin="a: b\n").exit_code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "sesame" not in file.read_text()
    file.chmod(0o640)
    found = passwords.read_passwords(file)
    assert found["alice"].matches("sesame") and not found["alice"].matches("Sesame")
    assert found["bob"].matches("a: b")
    assert found["alice"].salt != found["bob"].salt
    assert run(str(file), "alice", "--delete").exit_code == 0
    assert [*passwords.read_passwords(file)] == ["bob"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["passwords"]


@pytest.mark.parametrize(
    ("words", "stdin", "said"),
    [
        (("alice",), "a\nb\n", "do not match"),
        (("alice", "--stdin"), "\n", "the password is empty"),
        (("a:b", "--stdin"), "x\n", "a name has no colon"),
        (("#a", "--stdin"), "x\n", "a name has no colon"),
        ((" a", "--stdin"), "x\n", "a name has no colon"),
        (("", "--stdin"), "x\n", "a name has 1 to 255 characters"),
        (("alice", "--delete"), "", "no name 'alice'"),
    ],
)
def test_what_the_command_refuses(tmp_path: Path, words: tuple[str, ...], stdin: str, said: str) -> None:
    file = tmp_path / "passwords"
    ran = run(str(file), *words, stdin=stdin)
    assert ran.exit_code and said in ran.output
    assert not file.exists()


GOOD = "scrypt:2:1:1:AAAA:" + "A" * 43 + "="


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("alice", "it is not name:scrypt:"),
        ("alice:md5:1:2:3:a:b", "it is not name:scrypt:"),
        (GOOD.replace("scrypt", "alice:scrypt:"), "it is not name:scrypt:"),
        (f"alice:{GOOD}".replace(":2:", ":x:"), "no numbers"),
        (f"alice:{GOOD}".replace("AAAA:", "!:"), "no base64"),
        (f"alice:{GOOD}".replace(":2:", ":3:"), "a power of 2"),
        (f"alice:{GOOD}".replace(":2:", ":2097152:"), "a power of 2"),
        (f"alice:{GOOD}".replace(":2:1:", ":1048576:64:"), "more than 268435456 bytes of memory"),
        (f"alice:{GOOD}".replace("AAAA:", ":"), "the salt some"),
        ("alice:scrypt:2:1:1:AAAA:AAAA", "the hash has 32 bytes"),
        (f":{GOOD}", "a name has 1 to 255"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "passwords"
    file.write_text(f"# names\n\nbob:{GOOD}\n{line}\n")
    with pytest.raises(PluginError, match="line 4: ") as raised:
        passwords.read_passwords(file)
    assert said in str(raised.value) and str(file) in str(raised.value)


def test_what_is_no_file_is_said(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(PluginError, match="cannot be read"):
            passwords.read_passwords(path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(PluginError, match="is not UTF-8"):
        passwords.read_passwords(tmp_path / "binary")


class FewParts:
    """What the authenticator uses of a broker."""

    def __init__(self, file: Path) -> None:
        import logging

        self.settings = fixed_settings(
            leafcuttr_http.leafcuttr_register_settings(), {"lc.http.proxy.passwords.file": str(file)}
        )
        self.clock = HandClock()
        self.logger = logging.getLogger("leafcuttr.plugin.http")


def test_it_keeps_the_contract(tmp_path: Path) -> None:
    file = tmp_path / "passwords"
    passwords.write_passwords(file, {"alice": passwords.Hash.of("sesame")})
    broker: Any = FewParts(file)
    (spec,) = leafcuttr_http.leafcuttr_register_authenticators(broker)
    check_authenticator(spec, right=NameAndPassword("alice", "sesame"))


async def test_what_was_right_is_forgotten_after_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from leafcuttr_http.password_authenticator import REMEMBERED_S, PasswordAuthenticator

    file = tmp_path / "passwords"
    passwords.write_passwords(file, {"alice": passwords.Hash.of("sesame")})
    broker: Any = FewParts(file)
    authenticator = PasswordAuthenticator(broker)
    made = 0
    real = passwords._scrypt

    def counting(*given: Any) -> bytes:
        nonlocal made
        made += 1
        return real(*given)

    monkeypatch.setattr(passwords, "_scrypt", counting)
    monkeypatch.setattr("leafcuttr_http.password_authenticator._MOST", 3)
    for _ in range(3):
        assert await authenticator.authenticate(NameAndPassword("alice", "sesame"))
    assert made == 1
    broker.clock.ms += round(REMEMBERED_S * 1000) + 1
    assert await authenticator.authenticate(NameAndPassword("alice", "sesame"))
    assert made == 2
    for number in range(5):
        authenticator._remember(b"%d" % number)
    assert len(authenticator._right) == 3, "the memory for it is bounded"


def test_other_lines_stay_and_links_too(tmp_path: Path) -> None:
    """Comments, and entries with parameters of their own; lines may end as Windows writes them."""
    file, link = tmp_path / "real", tmp_path / "passwords"
    file.write_bytes(f"\ufeff# people\r\n\r\nbob:{GOOD}\r\n# machines\r\npump:{GOOD}\r\n".encode())
    link.symlink_to(file)
    assert run(str(link), "alice", "--stdin", stdin="x\r\n").exit_code == 0
    assert link.is_symlink()
    lines = file.read_text().splitlines()
    assert lines[:5] == ["# people", "", f"bob:{GOOD}", "# machines", f"pump:{GOOD}"]
    assert passwords.read_passwords(link)["alice"].matches("x")
    assert run(str(link), "bob", "--delete").exit_code == 0
    assert file.read_text().splitlines()[:4] == ["# people", "", "# machines", f"pump:{GOOD}"]
    assert [*passwords.read_passwords(file)] == ["pump", "alice"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root changes owners")
def test_the_owner_stays(tmp_path: Path) -> None:
    file = tmp_path / "passwords"
    run(str(file), "alice", "--stdin", stdin="x\n")
    os.chown(file, 12345, 23456)
    file.chmod(0o640)
    assert run(str(file), "bob", "--stdin", stdin="x\n").exit_code == 0
    about = file.stat()
    assert (about.st_uid, about.st_gid, stat.S_IMODE(about.st_mode)) == (12345, 23456, 0o640)


def test_several_at_once_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has read the file before any of them writes, as far as they are let."""
    file = tmp_path / "passwords"
    kept = passwords.Hash.of("x")
    here = threading.Barrier(8)

    def add(number: int) -> None:
        here.wait(60)
        passwords.set_password(file, f"name-{number}", kept)

    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(add, range(8)):
            pass
    assert len(passwords.read_passwords(file)) == 8
    assert [path.name for path in tmp_path.iterdir()] == ["passwords"]


@pytest.mark.parametrize("name", ["/proc/passwords", "/nowhere/passwords", "/dev/null/passwords"])
def test_a_place_that_cannot_be_written_is_one_line(name: str) -> None:
    ran = run(name, "alice", "--stdin", stdin="x\n")
    assert (ran.exit_code, ran.exception.__class__) == (1, SystemExit)
    assert f"leafcuttr: {name} cannot be written: " in ran.output and ran.output.count("\n") == 1


def test_a_wrong_file_is_not_replaced(tmp_path: Path) -> None:
    file = tmp_path / "passwords"
    file.write_text("bob:md5:1\n")
    for words in (("alice",), ("bob", "--delete")):
        ran = run(str(file), *words, stdin="x\nx\n")
        assert (ran.exit_code, "line 1: " in ran.output, "Password" in ran.output) == (1, True, False)
    assert file.read_text() == "bob:md5:1\n"


def test_a_password_that_is_no_text(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "leafcuttr", "http", "passwd", str(tmp_path / "p"), "alice", "--stdin"]
    ran = subprocess.run(command, input=b"\xff\n", capture_output=True, timeout=120, check=False)
    assert (ran.returncode, ran.stderr.endswith(b"the password is not UTF-8\n")) == (2, True)


def test_what_is_typed_is_not_shown(tmp_path: Path) -> None:
    """At a terminal of its own; what it shows is all that comes from it."""
    file = tmp_path / "passwords"
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "leafcuttr", "http", "passwd", str(file), "alice"])
    shown = b""

    def show(until: bytes) -> None:
        nonlocal shown
        while until not in shown:
            assert select.select([terminal], [], [], 60)[0], shown
            shown += os.read(terminal, 1000)

    show(b"Password: ")
    os.write(terminal, b"sesame\n")
    show(b"Repeat for confirmation: ")
    os.write(terminal, b"sesame\n")
    with contextlib.suppress(OSError):  # which is the end of a terminal
        while data := os.read(terminal, 1000):
            shown += data
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(terminal)
    assert b"sesame" not in shown
    assert passwords.read_passwords(file)["alice"].matches("sesame")


def test_an_unknown_name_costs_what_most_known_ones_do() -> None:
    cheap = passwords.Hash(2, 1, 1, b"s", bytes(32))
    found = {"a": cheap, "b": cheap._replace(n=4), "c": cheap._replace(n=4)}
    assert passwords.nobody(found)[:3] == (4, 1, 1)
    assert passwords.nobody({})[:3] == passwords.Hash.of("x")[:3]


async def test_ten_thousand_names(tmp_path: Path) -> None:
    from leafcuttr_http.password_authenticator import PasswordAuthenticator

    file = tmp_path / "passwords"
    kept = passwords.Hash(2, 1, 1, b"salt", bytes(32))
    right = kept._replace(digest=passwords._scrypt("x", 2, 1, 1, b"salt"))
    passwords.write_passwords(file, {**{f"name-{number}": kept for number in range(10_000)}, "last": right})
    broker: Any = FewParts(file)
    authenticator = PasswordAuthenticator(broker)
    assert await authenticator.authenticate(NameAndPassword("last", "x"))
    for name in ("name-0", "name-9999"):
        assert isinstance(await authenticator.authenticate(NameAndPassword(name, "x")), Refused)


@pytest.mark.parametrize("name", ["alice", "nobody"])
async def test_each_wrong_login_costs_one_hash_and_few_are_made_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A hundred logins at once take the memory of two hashes, and the loop goes on meanwhile."""
    from leafcuttr_http.password_authenticator import _AT_ONCE, PasswordAuthenticator

    n, r, _, *_ = passwords.nobody({})
    assert _AT_ONCE * 128 * n * r <= 64 * 1024 * 1024
    file = tmp_path / "passwords"
    passwords.write_passwords(file, {"alice": passwords.Hash.of("sesame")})
    broker: Any = FewParts(file)
    authenticator = PasswordAuthenticator(broker)
    lock, seen, go_on = threading.Lock(), [0, 0, 0], threading.Event()

    def counting(*given: Any) -> bytes:
        with lock:
            seen[0] += 1
            seen[1] += 1
            seen[2] = max(seen[2], seen[1])
        go_on.wait(60)
        with lock:
            seen[1] -= 1
        return bytes(32)

    monkeypatch.setattr(passwords, "_scrypt", counting)

    async def login(number: int) -> None:
        assert not isinstance(
            await authenticator.authenticate(NameAndPassword(name, f"{number}")), Authenticated
        )

    async with trio.open_nursery() as nursery:
        for number in range(100):
            nursery.start_soon(login, number)
        with within(30, "hashes that are being made"):
            while seen[1] < _AT_ONCE:
                await trio.lowlevel.checkpoint()
        for _ in range(100):
            await trio.lowlevel.checkpoint()
        assert seen[1] == _AT_ONCE
        go_on.set()
    assert (seen[0], seen[2]) == (100, _AT_ONCE)

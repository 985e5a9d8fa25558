"""Unix sockets: permissions, what a process has left behind, and errors in one line."""

from __future__ import annotations

import socket
import stat
from pathlib import Path

import pytest

from leafcuttr.errors import AddressTaken, StartError
from leafcuttr.net.unix import UnixSocket

SETTING = "lc.plugin.x.unix.path"


def opened(path: Path, mode: int = 0o660) -> UnixSocket:
    return UnixSocket(str(path), mode, 16, SETTING)


def refusal(path: Path | str) -> str:
    with pytest.raises(StartError) as caught:
        UnixSocket(str(path), 0o660, 16, SETTING)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def connects(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


@pytest.mark.parametrize("mode", [0o600, 0o660, 0o666])
def test_it_listens_with_its_permissions(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "s"
    unix = opened(path, mode)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert connects(path)
    assert not unix.socket.getblocking()
    unix.close()
    assert not path.exists()
    unix.close()


def test_one_that_was_left_behind_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as before:
        before.bind(str(path))
    assert path.exists()
    unix = opened(path)
    assert connects(path)
    unix.close()


def test_one_that_another_process_has_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s"
    first = opened(path)
    assert refusal(path) == f"{SETTING}={path}: another program listens there"
    with pytest.raises(AddressTaken):
        opened(path)
    assert connects(path)
    first.close()


def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_text("precious")
    assert refusal(path) == f"{SETTING}={path}: there is a file that is no socket"
    assert path.read_text() == "precious"


def test_a_file_of_another_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "s"
    unix = opened(path)
    path.unlink()
    other = opened(path)
    unix.close()
    assert connects(path)
    other.close()


def test_what_cannot_be_had(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none" / "s").endswith(": No such file or directory")
    assert refusal("/" + "x" * 200).endswith("the path is too long for a Unix socket")

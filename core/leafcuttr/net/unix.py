"""Unix sockets, bound with errors that say what to do, and taken away again."""

import errno
import os
import socket
import stat

from leafcuttr.errors import AddressTaken, StartError


class UnixSocket:
    """A bound Unix socket that listens and does not block. `close` takes its file away too."""

    def __init__(self, path: str, mode: int, backlog: int, setting: str) -> None:
        """A socket that a process has left behind at `path` is replaced. Raises StartError in one line that names the
        setting: another process listens there (AddressTaken), the path is no socket, or cannot be had."""
        self.path = path
        try:
            _remove_stale(path)
            self.socket = _bound(path, mode, backlog)
            self._of_file = _identity(path)
        except OSError as error:
            kind = AddressTaken if error.errno == errno.EADDRINUSE else StartError
            raise kind(f"{setting}={path}: {_meaning(error)}") from None

    def close(self) -> None:
        """Close it, and remove its file unless another process has put its own there."""
        self.socket.close()
        try:
            if _identity(self.path) == self._of_file:
                os.unlink(self.path)  # noqa: PTH108 - a text as the person gave it
        except OSError:
            return


def _bound(path: str, mode: int, backlog: int) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        # The file gets these permissions when it is made: nobody else connects before those that are wanted are set.
        os.fchmod(sock.fileno(), 0o600)
        sock.bind(path)
        os.chmod(path, mode)  # noqa: PTH101
        sock.listen(backlog)
    except OSError:
        sock.close()
        raise
    return sock


def _remove_stale(path: str) -> None:
    """Raises OSError: EADDRINUSE where a process listens there, EEXIST where the file is no socket."""
    try:
        found = os.stat(path)  # noqa: PTH116
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise FileExistsError(errno.EEXIST, "")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        answer = probe.connect_ex(path)
    if answer != errno.ECONNREFUSED:
        raise OSError(errno.EADDRINUSE, "")
    os.unlink(path)  # noqa: PTH108


def _identity(path: str) -> tuple[int, int]:
    found = os.stat(path)  # noqa: PTH116
    return found.st_dev, found.st_ino


def _meaning(error: OSError) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return "another program listens there"
        case errno.EEXIST:
            return "there is a file that is no socket"
        case None:
            return "the path is too long for a Unix socket"  # raised by Python, without a number
        case number:
            return os.strerror(number)

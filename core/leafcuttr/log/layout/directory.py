"""The data directory as a whole: its lock, the version of its format, its identity.

One process holds it (a lock on `.lock`). `leafcuttr.format` carries the version of LeafCuttr's on-disk
format: an older directory is upgraded step by step when it is opened, a newer one is refused.
`meta.properties` is Kafka's, so that Kafka's tools recognise the directory. Partitions, and everything in
their folders, belong to the manager.

Every refusal is a StartError of one line that names the directory.
"""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import sleep
from typing import Final

from leafcuttr.errors import StartError
from leafcuttr.log.files.atomic import replace_file
from leafcuttr.log.files.failed_sync import sync_directory
from leafcuttr.log.layout.checkpoints import uuid_text

FORMAT_VERSION: Final = 1
FORMAT_FILE: Final = "leafcuttr.format"
META_FILE: Final = "meta.properties"
LOCK_FILE: Final = ".lock"
_LEFTOVER_TRIES: Final = 200
_LEFTOVER_WAIT_S: Final = 0.01

# What makes a directory of version n one of version n + 1. A step may be repeated after a crash, because the
# version is written after it: it must leave a directory that it has already upgraded as it is.
UPGRADES: Final[Mapping[int, Callable[[Path], None]]] = {}


class DataDirectory:
    """An open data directory, held for this process until `close`.

    `cluster_id` and `directory_id` are Kafka UUIDs in text form, made at the first start.
    """

    __slots__ = ("_lock", "cluster_id", "directory_id", "path")

    def __init__(self, path: Path, lock: int, cluster_id: str, directory_id: str) -> None:
        self.path = path
        self._lock = lock
        self.cluster_id = cluster_id
        self.directory_id = directory_id

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        node_id: int,
        cluster_id: str | None = None,
        format_version: int = FORMAT_VERSION,
        upgrades: Mapping[int, Callable[[Path], None]] = UPGRADES,
    ) -> "DataDirectory":
        """Create `path` if it is missing, lock it, bring it to this format.

        `cluster_id` is used when the directory has none yet. Raises StartError.
        """
        with _refusals(path):
            path.mkdir(parents=True, exist_ok=True)
            lock = _lock(path)
            try:
                _upgrade(path, format_version, upgrades)
                names = _identity(path, node_id, cluster_id)
            except BaseException:
                os.close(lock)
                raise
        return cls(path, lock, *names)

    def close(self) -> None:
        """Let the directory go. Doing it twice is harmless."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep brokers out of an existing directory while a tool works on it; nothing else is touched.

    A directory without a lock file has never been used, and stays without. Raises StartError.
    """
    if not (path / LOCK_FILE).exists():
        yield
        return
    with _refusals(path):
        lock = _lock(path)
    try:
        yield
    finally:
        os.close(lock)


def lock_owner(path: Path) -> int | None:
    """The process that has the lock of an existing directory, or had it last. Raises OSError."""
    return _process((path / LOCK_FILE).read_bytes())


def written_format(path: Path) -> int | str | None:
    """The version of the format of a directory, the text that says none, or None if there is no such file. Raises
    OSError."""
    try:
        text = (path / FORMAT_FILE).read_text("ascii", "replace").strip()
    except FileNotFoundError:
        return None
    name, _, number = text.partition("=")
    return int(number) if name == "version" and number.isdecimal() else text


def identity(path: Path) -> dict[str, str]:
    """What `meta.properties` says: `cluster.id`, `directory.id`, `node.id`. Raises OSError."""
    return _properties((path / META_FILE).read_text("latin-1"))


def _process(content: bytes) -> int | None:
    text = content.decode("ascii", "replace").strip()
    return int(text) if text.isdecimal() else None


@contextlib.contextmanager
def _refusals(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = error.filename if error.filename and str(error.filename) != str(path) else ""
        at = f" ({where})" if where else ""
        raise StartError(f"data directory {path} cannot be used: {error.strerror}{at}") from error


def _lock(path: Path) -> int:
    """Take the lock, or raise StartError: at once if another process uses it.

    The record lock ends with its process and keeps out an Apache Kafka too, which takes that kind on the same file;
    flock keeps out a second LeafCuttr in this process.
    """
    descriptor = os.open(path / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    owner = _process(os.pread(descriptor, 20, 0))
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _take_over(descriptor, wait=owner not in (None, os.getpid()))
    except (BlockingIOError, PermissionError):
        os.close(descriptor)
        by = "" if owner is None else f" (process {owner})"
        raise StartError(f"data directory {path} is in use by another broker{by}") from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def _take_over(descriptor: int, *, wait: bool) -> None:
    """Take the flock; `wait` if another process was the owner. Raises BlockingIOError.

    A broker that was killed in the very moment in which it started a process leaves its flock, but not its record
    lock, to that process, until that has become the program it is to be: worth a short wait behind another owner.
    """
    for _ in range(_LEFTOVER_TRIES if wait else 0):
        with contextlib.suppress(BlockingIOError):
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        sleep(_LEFTOVER_WAIT_S)
    return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _upgrade(path: Path, known: int, upgrades: Mapping[int, Callable[[Path], None]]) -> None:
    file = path / FORMAT_FILE
    version = written_format(path)
    if version is None:
        replace_file(file, f"version={known}\n".encode())
        sync_directory(path.parent)
        return
    if isinstance(version, str):
        raise StartError(
            f"data directory {path} cannot be used: {FORMAT_FILE} does not say version=N but {version[:40]!r}"
        )
    if version > known:
        raise StartError(
            f"data directory {path} was written by a newer LeafCuttr "
            f"(format {version}, this one knows {known}): start it with that version"
        )
    for step in range(version, known):
        if step not in upgrades:
            raise StartError(
                f"data directory {path} has format {version}, which this LeafCuttr cannot upgrade"
            )
        upgrades[step](path)
        replace_file(file, f"version={step + 1}\n".encode())


def _identity(path: Path, node_id: int, cluster_id: str | None) -> tuple[str, str]:
    """Cluster id and directory id from `meta.properties`, which is written at the first start."""
    file = path / META_FILE
    try:
        found = identity(path)
    except FileNotFoundError:
        found = {"version": "1", "cluster.id": cluster_id or random_uuid(), "node.id": str(node_id)}
    if found.get("version") != "1":
        raise StartError(
            f"data directory {path}: {META_FILE} has version {found.get('version')!r}, 1 is known"
        )
    if not found.get("cluster.id"):
        raise StartError(f"data directory {path}: {META_FILE} names no cluster.id")
    if found.get("node.id") != str(node_id):
        raise StartError(
            f"data directory {path} belongs to node.id {found.get('node.id')} ({META_FILE}), "
            f"but node.id is {node_id}"
        )
    if "directory.id" not in found:
        found["directory.id"] = random_uuid()
        replace_file(
            file, "".join(f"{name}={value}\n" for name, value in sorted(found.items())).encode("latin-1")
        )
    return found["cluster.id"], found["directory.id"]


def _properties(text: str) -> dict[str, str]:
    """The pairs of a Java properties file, as far as `meta.properties` uses that format."""
    pairs = {}
    for line in text.splitlines():
        if line.strip() and line.lstrip()[0] not in "#!":
            name, _, value = line.partition("=")
            pairs[name.strip()] = value.strip().replace("\\", "")
    return pairs


def random_uuid() -> str:
    """A new Kafka UUID as text. Kafka avoids a leading hyphen, which its tools would take for an option."""
    while True:
        text = uuid_text(os.urandom(16))
        if not text.startswith("-"):
            return text

"""The file of names and hashes of passwords: one line a name, `name:scrypt:n:r:p:salt:hash`, salt and hash in base64.

Hashes are scrypt's (RFC 7914) by the standard library: some 16 MB and 40 ms each with the parameters here, so they are
made in a worker thread and by few at a time.
"""

import base64
import binascii
import fcntl
import hashlib
import hmac
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from leafcuttr_sdk.errors import PluginError

_N, _R, _P = 2**14, 8, 1
_SALT_BYTES: Final = 16
_HASH_BYTES: Final = 32
_MOST_MEMORY: Final = 256 * 1024 * 1024
_LONGEST_FILE: Final = 16 * 1024 * 1024
LONGEST_NAME: Final = 255


class Hash(NamedTuple):
    """A password as it is kept."""

    n: int
    r: int
    p: int
    salt: bytes
    digest: bytes

    @classmethod
    def of(cls, password: str) -> "Hash":
        """With a new salt. It takes a while."""
        salt = os.urandom(_SALT_BYTES)
        return cls(_N, _R, _P, salt, _scrypt(password, _N, _R, _P, salt))

    def matches(self, password: str) -> bool:
        """It takes a while, and as long for any password."""
        return hmac.compare_digest(_scrypt(password, self.n, self.r, self.p, self.salt), self.digest)

    def __str__(self) -> str:
        salt, digest = (base64.b64encode(each).decode() for each in (self.salt, self.digest))
        return f"scrypt:{self.n}:{self.r}:{self.p}:{salt}:{digest}"


def nobody(found: Mapping[str, Hash]) -> Hash:
    """What the password of an unknown name is compared with, so that it takes as long as that of a known one: with the
    parameters that most of them have."""
    used = Counter((each.n, each.r, each.p) for each in found.values())
    n, r, p = used.most_common(1)[0][0] if used else (_N, _R, _P)
    return Hash(n, r, p, bytes(_SALT_BYTES), bytes(_HASH_BYTES))


def _scrypt(password: str, n: int, r: int, p: int, salt: bytes) -> bytes:
    return hashlib.scrypt(
        password.encode("utf-8", "surrogatepass"),
        salt=salt,
        n=n,
        r=r,
        p=p,
        maxmem=_MOST_MEMORY + 1024 * 1024,
        dklen=_HASH_BYTES,
    )


def check_name(name: str) -> str | None:
    """Why this is no name that the file can have; None if it is one."""
    if not name or len(name) > LONGEST_NAME:
        return f"a name has 1 to {LONGEST_NAME} characters"
    if ":" in name or name.startswith("#") or name != name.strip() or not name.isprintable():
        return "a name has no colon, nothing that cannot be printed, no # at its beginning and no space at its ends"
    return None


def read_passwords(path: Path) -> dict[str, Hash]:
    """The hashes by name. Raises PluginError with one line that names the file and the line."""
    found: dict[str, Hash] = {}
    for number, line in enumerate(_lines(path), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, rest = line.partition(":")
        try:
            found[name] = _parse(rest)
        except ValueError as error:
            raise PluginError(f"{path}, line {number}: {error}") from None
        if wrong := check_name(name):
            raise PluginError(f"{path}, line {number}: {wrong}")
    return found


def _lines(path: Path) -> list[str]:
    try:
        if path.stat().st_size > _LONGEST_FILE:
            raise PluginError(f"{path} has more than {_LONGEST_FILE} bytes")
        return path.read_text("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise PluginError(f"{path} is not UTF-8") from None
    except OSError as error:
        raise PluginError(f"{path} cannot be read: {error.strerror}") from None


def _parse(text: str) -> Hash:
    kind, *parts = text.strip().split(":")
    if kind != "scrypt" or len(parts) != 5:
        raise ValueError("it is not name:scrypt:n:r:p:salt:hash, as `leafcuttr http passwd` writes it")
    try:
        n, r, p = (int(part) for part in parts[:3])
        salt, digest = (base64.b64decode(part, validate=True) for part in parts[3:])
    except (ValueError, binascii.Error):
        raise ValueError("its numbers are no numbers, or salt and hash no base64") from None
    # Of every request that has this name, so bounded here.
    if not (2 <= n <= 2**20 and n & (n - 1) == 0 and 1 <= r <= 64 and 1 <= p <= 16):
        raise ValueError("n is a power of 2 up to 1048576, r from 1 to 64, p from 1 to 16")
    if 128 * r * (n + p + 2) > _MOST_MEMORY:
        raise ValueError(f"these parameters take more than {_MOST_MEMORY} bytes of memory")
    if len(digest) != _HASH_BYTES or not salt:
        raise ValueError(f"the hash has {_HASH_BYTES} bytes, and the salt some")
    return Hash(n, r, p, salt, digest)


def write_passwords(path: Path, found: Mapping[str, Hash]) -> None:
    """Replace the file at once, readable by its owner only. Raises OSError."""
    _replace(path, [f"{name}:{each}" for name, each in sorted(found.items())])


def set_password(path: Path, name: str, kept: Hash | None) -> bool:
    """Give the name this hash, or take it out of the file; all other lines stay as they are. Whether the name was there
    comes back. Several may do this at once. Raises PluginError where the file is wrong, OSError where it cannot be
    written."""
    path = Path(os.path.realpath(path))
    with _alone(path.parent):
        lines = _lines(path) if path.exists() else []
        known = name in (read_passwords(path) if lines else {})
        if kept is None and not known:
            return False
        others = [line for line in lines if line.partition(":")[0] != name]
        _replace(path, [*others, f"{name}:{kept}"] if kept else others)
    return known


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """While others that change a file in this folder wait. The file itself is replaced, so its lock would not hold."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _replace(path: Path, lines: Iterable[str]) -> None:
    """At once, with the owner and the permissions that the file has; a new one is readable by its owner only."""
    before = path.stat() if path.exists() else None
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            if before is not None:
                with suppress(PermissionError):
                    # A broker of another user reads it, and could not any more.
                    os.fchown(file.fileno(), before.st_uid, before.st_gid)
            os.fchmod(file.fileno(), before.st_mode & 0o777 if before is not None else 0o600)
            file.writelines(f"{line}\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise

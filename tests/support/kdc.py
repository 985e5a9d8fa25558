"""A Kerberos realm of a test: MIT's KDC on a free port of this machine, with its database in a folder.

    with running_kdc(folder) as realm:
        keytab = realm.add("kafka/localhost")
        environ = realm.environ()

Needs Debian's krb5-kdc; `MISSING` says so where it is not installed.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from support.waiting import free_port, until

REALM: Final = "LEAF.TEST"
SKEW_S: Final = 2
_PATH: Final = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
_PROGRAMS: Final = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
_LOST: Final = [name for name in _PROGRAMS if shutil.which(name, path=_PATH) is None]
MISSING: Final = f"not installed: {', '.join(_LOST)} (apt-get install krb5-kdc krb5-user)" if _LOST else ""


@dataclass
class Realm:
    """`config` is its krb5.conf, for Java too."""

    folder: Path
    port: int
    config: Path = field(init=False)

    def __post_init__(self) -> None:
        self.config = self.folder / "krb5.conf"

    def environ(self, **more: str) -> dict[str, str]:
        """For programs of MIT's library: its krb5.conf, and caches of their own."""
        folder = self.folder
        return {
            "KRB5_CONFIG": str(self.config),
            "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{folder}/tickets",
            "KRB5RCACHENAME": f"dfl:{folder}/replays",
            "PATH": _PATH,
            **more,
        }

    def run(self, *command: str, environ: dict[str, str] | None = None) -> str:
        """One of its programs; what it prints."""
        given = {**os.environ, **self.environ(**(environ or {}))}
        done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, f"{command}: {done.stderr}{done.stdout}"
        return done.stdout

    def add(self, principal: str, *, keytab: Path | None = None) -> Path:
        """A principal with a random key, which is in the keytab too."""
        file = keytab or self.folder / f"{principal.replace('/', '_')}.keytab"
        self.run("kadmin.local", "-q", f"addprinc -randkey {principal}")
        self.run("kadmin.local", "-q", f"ktadd -k {file} {principal}")
        return file

    def tickets(self, principal: str, keytab: Path, *, life: str = "1h") -> dict[str, str]:
        """An environment with a cache that has the principal's ticket."""
        own = {"KRB5CCNAME": f"FILE:{self.folder}/tickets-of-{principal.replace('/', '_')}"}
        self.run("kinit", "-l", life, "-k", "-t", str(keytab), principal, environ=own)
        return self.environ(**own)


@contextmanager
def running_kdc(folder: Path) -> Iterator[Realm]:
    realm = Realm(folder, free_port())
    folder.mkdir(parents=True, exist_ok=True)
    realm.config.write_text(
        f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n"
        f" rdns = false\n dns_canonicalize_hostname = false\n udp_preference_limit = 1\n clockskew = {SKEW_S}\n"
        f"[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{realm.port}\n }}\n"
    )
    (folder / "kdc.conf").write_text(
        f"[realms]\n {REALM} = {{\n  database_name = {folder}/principal\n  key_stash_file = {folder}/stash\n"
        f"  acl_file = {folder}/acl\n  kdc_listen = 127.0.0.1:{realm.port}\n"
        f"  kdc_tcp_listen = 127.0.0.1:{realm.port}\n  max_life = 10h\n }}\n"
        f"[logging]\n kdc = FILE:{folder}/kdc.log\n"
    )
    realm.run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")
    given = {**os.environ, **realm.environ()}
    with (folder / "kdc.out").open("wb") as out:
        kdc = subprocess.Popen(["krb5kdc", "-n", "-r", REALM], env=given, stdout=out, stderr=out)
    try:
        until(lambda: _accepts(realm.port), "the KDC")
        yield realm
    finally:
        kdc.terminate()
        kdc.wait(60)


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True

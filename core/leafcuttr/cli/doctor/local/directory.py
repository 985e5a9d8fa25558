"""The data directory of a configuration: its owner, where it lies, what its disk can hold."""

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from leafcuttr.cli.common.offline import stored_topics
from leafcuttr.cli.doctor.findings import DoctorFinding, fine, problem, skipped, warning
from leafcuttr.cli.doctor.fullness import fullness
from leafcuttr.cli.doctor.local.listeners import listening_processes
from leafcuttr.cli.doctor.local.site import Site
from leafcuttr.errors import StartError
from leafcuttr.log.files.failed_sync import is_marked
from leafcuttr.log.layout.directory import (
    FORMAT_FILE,
    FORMAT_VERSION,
    META_FILE,
    identity,
    lock_owner,
    locked,
    written_format,
)
from leafcuttr.log.layout.folders import partition_of

_TEMPORARY: Final = ("/tmp", "/var/tmp", "/run", "/dev/shm")
IN_MEMORY: Final = ("tmpfs", "ramfs")
_OVER_THE_NETWORK: Final = ("nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "fuse.sshfs", "fuse.glusterfs")
_PROPOSED: Final = "/var/lib/leafcuttr"
_FUTURE_S: Final = 3600


def can_be_used(site: Site) -> Iterator[DoctorFinding]:
    """The directory can be used: it is one, may be written, and no other broker uses it."""
    directory, standing = site.directory, site.standing
    if not standing.is_dir():
        yield problem(
            f"{directory} cannot be made: {standing} is a file",
            "The broker does not start.",
            site.directory_line(_PROPOSED),
        )
        return
    if os.statvfs(standing).f_flag & os.ST_RDONLY:
        yield problem(
            f"the file system of {standing} is read-only",
            "The broker cannot start; a kernel that met an error on a disk makes it so too.",
            "see why: dmesg | tail; then: mount -o remount,rw " + str(mount_of(standing).point),
            "or another disk: " + site.directory_line(_PROPOSED),
        )
        return
    if not _writable(standing):
        yield problem(
            f"{standing} may not be written by user {os.geteuid()}",
            "The broker does not start, or its partitions go offline.",
            f"chown -R {os.geteuid()} {standing}",
            "or run it as the owner: in the systemd unit, User=" + _owner(standing),
        )
        return
    if not directory.exists():
        yield fine(f"{directory} will be made in {standing}")
        return
    foreign = [one for one in _folders(directory) if not _writable(one)]
    if foreign:
        yield problem(
            f"{len(foreign)} partition folders belong to another user, {foreign[0].name} to {_owner(foreign[0])}",
            "The broker was started once as another user; these partitions go offline.",
            f"chown -R {os.geteuid()} {directory}",
        )
        return
    try:
        with locked(directory):
            yield fine(f"{directory} can be written, and no broker uses it")
    except StartError as error:
        owner = lock_owner(directory)
        ports = [listener.port for listener in site.listeners if listener.port]
        if owner and ports and all(owner in listening_processes(port) for port in ports):
            site.running = owner
            yield fine(f"{directory} is in use by process {owner}, which is this broker")
            return
        yield problem(
            str(error),
            "One directory is for one broker.",
            "stop the other one" + (f": kill {owner}" if owner else ""),
            "or give this one its own: " + site.directory_line(_PROPOSED),
        )


def _writable(path: Path) -> bool:
    return os.access(path, os.W_OK | os.X_OK, effective_ids=True)


def _owner(path: Path) -> str:
    import pwd

    uid = path.stat().st_uid
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _folders(directory: Path) -> list[Path]:
    return [one for one in directory.iterdir() if partition_of(one.name) and one.is_dir()]


def fits_this_version(site: Site) -> Iterator[DoctorFinding]:
    """The files in the directory were written by this version or an older one, and for this node."""
    directory = site.directory
    version = written_format(directory)
    if version is None:
        if (directory / META_FILE).exists() or (directory.exists() and _folders(directory)):
            yield problem(
                f"{directory} was written by Apache Kafka, or its {FORMAT_FILE} is missing",
                "LeafCuttr starts there without the topics: they are not in its metadata.",
                f"take them in first: leafcuttr repair --adopt --execute {directory}",
                "or begin an empty directory: " + site.directory_line(_PROPOSED),
            )
        else:
            yield fine("there is no data yet")
        return
    if isinstance(version, str) or version > FORMAT_VERSION:
        yield problem(
            f"{directory} has format {str(version or 'nothing')[:20]}, this version knows {FORMAT_VERSION}",
            "A newer LeafCuttr wrote it, and the broker does not start.",
            "start it with that version: pip install -U leafcuttr",
            "or begin an empty directory: " + site.directory_line(_PROPOSED),
        )
        return
    written_for = _node_in(directory)
    if written_for is not None and written_for != str(site.settings.int("node.id")):
        yield problem(
            f"{directory} belongs to node.id {written_for}, the configuration says {site.settings.int('node.id')}",
            "The broker does not start with another's data.",
            site.line("node.id", written_for),
        )
        return
    try:
        topics = stored_topics(directory)
    except StartError as error:
        yield problem(
            str(error),
            "The broker does not start without knowing its topics.",
            f"make the metadata anew from the folders: leafcuttr repair --metadata --execute {directory}",
        )
        return
    doubtful = [one.name for one in _folders(directory) if is_marked(one)]
    if doubtful:
        yield warning(
            f"the disk has failed to write what was in {', '.join(doubtful[:3])}",
            "The next start reads these logs again and cuts what the disk does not give back.",
            "check the disk: dmesg | grep -i error; smartctl -a DEVICE",
        )
    yield fine(f"format {FORMAT_VERSION}, {len(topics or ())} topics")


def _node_in(directory: Path) -> str | None:
    try:
        return identity(directory).get("node.id")
    except OSError:
        return None


def will_stay(site: Site) -> Iterator[DoctorFinding]:
    """The data is in a file system that survives a restart of the machine."""
    standing, mount = site.standing, mount_of(site.standing)
    temporary = next((one for one in _TEMPORARY if standing.is_relative_to(Path(one).resolve())), None)
    if mount.kind in IN_MEMORY:
        yield warning(
            f"{standing} is in memory ({mount.kind} at {mount.point})",
            "All records are lost when the machine restarts, and they take its memory.",
            site.directory_line(_PROPOSED),
        )
    elif mount.kind == "overlay":
        yield warning(
            f"{standing} is in a container's own layer",
            "All records are lost when the container is made anew.",
            f"mount a volume there: volumes: [leafcuttr-data:{site.directory.resolve()}] (compose), "
            f"-v leafcuttr-data:{site.directory.resolve()}",
        )
    elif temporary is not None:
        yield from _below(site, standing, temporary, mount.point)
    elif mount.kind in _OVER_THE_NETWORK:
        yield warning(
            f"{standing} is on another machine ({mount.kind})",
            "Locks and writes that are said to be on the disk are promises of that machine; each write waits for the "
            "network.",
            site.directory_line("/a/local/disk"),
        )
    else:
        yield fine(f"{standing} is on {mount.kind} at {mount.point}")


def _below(site: Site, standing: Path, temporary: str, point: Path) -> Iterator[DoctorFinding]:
    """A volume that is mounted below a temporary folder is kept; the files of the folder itself are not."""
    if point != Path(temporary).resolve() and point.is_relative_to(Path(temporary).resolve()):
        yield fine(f"{standing} is on a volume of its own, mounted at {point}")
        return
    yield warning(
        f"{standing} is below {temporary}",
        "That folder is emptied at a restart, or file by file after some days: records are lost without an error.",
        site.directory_line(_PROPOSED),
        f"and move what is there, with the broker stopped: mv {site.directory.resolve()} {_PROPOSED}",
    )


class Mount(NamedTuple):
    point: Path
    kind: str


def mount_of(path: Path, table: str | None = None) -> Mount:
    """The mount that a path lies in, from /proc/self/mountinfo (proc(5)); the last one mounted there counts."""
    best = Mount(Path("/"), "unknown")
    for line in (table or Path("/proc/self/mountinfo").read_text()).splitlines():
        fields = line.split()
        point = Path(fields[4].encode().decode("unicode_escape"))
        if path.is_relative_to(point) and len(point.parts) >= len(best.point.parts):
            best = Mount(point, fields[fields.index("-") + 1])
    return best


def has_space(site: Site) -> Iterator[DoctorFinding]:
    """The disk is not nearly full, and can hold more files."""
    found = os.statvfs(site.standing)
    free = found.f_bavail * found.f_frsize
    least = site.settings.int("lc.log.min.free.bytes")
    if free < least:
        yield problem(
            f"{site.standing} has {free / 1e6:.0f} MB free, and lc.log.min.free.bytes keeps {least / 1e6:.0f} MB",
            "What producers send is refused with KAFKA_STORAGE_ERROR.",
            "free some space, or: "
            + site.line("log.retention.bytes", "1073741824")
            + " (for each partition)",
            "or another disk: " + site.directory_line(_PROPOSED),
        )
    else:
        # As df counts: what the system keeps for itself is neither used nor free.
        used = (found.f_blocks - found.f_bfree) * found.f_frsize
        yield fullness(f"the disk of {site.standing}", free, used + free)
    if found.f_files and found.f_favail < min(10_000, found.f_files // 10):
        yield warning(
            f"{site.standing} can hold {found.f_favail} more files",
            "Each segment is three files and more; without them a disk is full although it has free space.",
            "fewer and larger segments: " + site.line("log.segment.bytes", "1073741824"),
            "see where they are: du --inodes -d 2 " + str(mount_of(site.standing).point),
        )


def clock_is_plausible(site: Site) -> Iterator[DoctorFinding]:
    """The clock is not behind the times at which files were written."""
    now = time.time()
    newest, when = None, 0.0
    if site.directory.is_dir():
        for path in [*site.directory.iterdir(), *(p for f in _folders(site.directory) for p in f.iterdir())]:
            about = path.stat(follow_symlinks=False)
            if stat.S_ISREG(about.st_mode) and about.st_mtime > when:
                newest, when = path, about.st_mtime
    if when > now + _FUTURE_S:
        assert newest is not None
        yield problem(
            f"{newest} was written {(when - now) / 3600:.1f} hours from now: the clock of this machine is behind",
            "Records get times of the past, retention and offsets by time go wrong. Boxes without a battery for their "
            "clock start like this.",
            "timedatectl set-ntp true; in the systemd unit: After=time-sync.target and Wants=time-sync.target",
        )
    elif newest is None:
        yield skipped("there is no file yet to compare the time with")
    else:
        yield fine("the time is later than all that was written")


def partitions_in(directory: Path) -> int:
    """How many partition folders there are."""
    return len(_folders(directory)) if directory.is_dir() else 0

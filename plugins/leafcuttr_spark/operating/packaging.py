"""An archive for executors: what tasks of a pipeline import, taken from the environment that this runs in.

    leafcuttr.tar.gz
        leafcuttr/  leafcuttr_sdk/  leafcuttr_spark/  pyspark_leafcuttr.py  leafcuttr-1.0.dist-info/
        numpy/  pyarrow/  ...                              what the extra `spark-worker` requires
        MODULE/                                            modules of the pipeline's own

Spark unpacks it beside each executor: `spark.archives=leafcuttr.tar.gz#leafcuttr` with
`spark.executorEnv.PYTHONPATH=leafcuttr`. Executors need the same Python, and the same kind of machine.
"""

import importlib.util
import io
import re
import sys
import tarfile
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final, NamedTuple

from leafcuttr_sdk.errors import PluginError

OURS: Final = "leafcuttr"
EXTRA: Final = "spark-worker"
_MODULES: Final = ("leafcuttr", "leafcuttr_sdk", "leafcuttr_spark", "pyspark_leafcuttr")
"""Of this distribution; other plugins do not run there."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_MARKER: Final = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")
_ELSEWHERE: Final = re.compile(
    r"(?:sys_platform|os_name|platform_system)\s*==\s*['\"](?:win32|nt|Windows|darwin|Darwin)"
    r"|(?:implementation_name|platform_python_implementation)\s*!=\s*['\"](?i:cpython)"
)
"""Markers of other machines, and of other Pythons."""
_DRIVER_ONLY: Final = frozenset({"click", "confluent-kafka", "pluggy", "prometheus-client", "rich"})
"""What our distribution requires for commands and brokers."""
_LEFT_OUT: Final = {"tests", "test", "__pycache__"}


class Member(NamedTuple):
    """One file of the archive."""

    name: str
    path: Path


class PackagingError(PluginError):
    """The archive cannot be made. The message is one line."""


def required(extra: str = EXTRA) -> list[Distribution]:
    """The distributions that tasks need: what ours requires with the extra, and what these require in turn. Raises
    PackagingError for one that is not installed."""
    found: dict[str, Distribution] = {}
    done: set[tuple[str, frozenset[str]]] = set()
    left = [(OURS, frozenset({extra}))]
    while left:
        name, extras = left.pop()
        key = _key(name)
        if (key, extras) in done or key in _DRIVER_ONLY:
            continue
        done.add((key, extras))
        try:
            found[key] = distribution(name)
        except PackageNotFoundError:
            raise PackagingError(f"{name} is not installed: pip install 'leafcuttr[{extra}]'") from None
        left += _requirements(found[key], extras)
    del found[OURS]
    return [found[key] for key in sorted(found)]


def members(modules: Iterable[str] = ()) -> Iterator[Member]:
    """All files. `modules` are names of modules or packages of the pipeline's own. Raises PackagingError."""
    for module in (*_MODULES, *modules):
        yield from _of_module(module)
    needed = required()
    # By its entry points tasks find the client of clusters.
    yield from (member for member in _of_distribution(distribution(OURS)) if ".dist-info/" in member.name)
    for one in needed:
        yield from _of_distribution(one)


def write_archive(path: Path, modules: Iterable[str] = ()) -> int:
    """How many files it has. Raises PackagingError, OSError."""
    names: set[str] = set()
    new = path.with_name(f"{path.name}.new")
    try:
        with tarfile.open(new, "w:gz", compresslevel=3) as archive:
            for member in members(modules):
                if member.name in names:
                    continue
                names.add(member.name)
                archive.add(member.path, member.name, recursive=False, filter=_plain)
            _note(archive)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
    return len(names)


# How


def _key(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _requirements(one: Distribution, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """Names with their extras. Other markers than those of extras and of Python's version hold."""
    for line in one.requires or ():
        requirement, _, marker = line.partition(";")
        of_extra = _MARKER.search(marker)
        name = _NAME.match(requirement.strip())
        if name is None or (of_extra is not None and of_extra[1] not in extras) or not _holds(marker):
            continue
        listed = re.search(r"\[([^\]]*)\]", requirement)
        yield name[0], frozenset(each.strip() for each in listed[1].split(",")) if listed else frozenset()


def _holds(marker: str) -> bool:
    """Whether it does on this Python and machine, as far as packages that tasks need have such markers."""
    if _ELSEWHERE.search(marker):
        return False
    found = re.search(r"""python_version\s*(<|>=)\s*['"](\d+)\.(\d+)['"]""", marker)
    if found is None:
        return True
    version = (int(found[2]), int(found[3]))
    return sys.version_info[:2] < version if found[1] == "<" else sys.version_info[:2] >= version


def _of_module(name: str) -> Iterator[Member]:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None:
        raise PackagingError(f"there is no module {name}")
    origin = Path(spec.origin)
    if origin.name != "__init__.py":
        yield Member(f"{name.replace('.', '/')}{origin.suffix}", origin)
        return
    root = origin.parent
    for path in sorted(root.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield Member(f"{name.replace('.', '/')}/{path.relative_to(root).as_posix()}", path)


def _of_distribution(one: Distribution) -> Iterator[Member]:
    for file in one.files or ():
        path = Path(str(one.locate_file(file)))
        if ".." in file.parts or _LEFT_OUT.intersection(file.parts) or not path.is_file():
            continue
        yield Member(file.as_posix(), path)


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """Of nobody: the same environment gives the same archive."""
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mtime = 0
    return info


def _note(archive: tarfile.TarFile) -> None:
    text = f"Python {sys.version_info[0]}.{sys.version_info[1]}\n".encode()
    info = _plain(tarfile.TarInfo("LEAFCUTTR-PYTHON"))
    info.size = len(text)
    archive.addfile(info, io.BytesIO(text))

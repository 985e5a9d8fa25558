"""What a process has run out of: seen in what is raised, and survived by imports that come late."""

from __future__ import annotations

import errno
import importlib
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from leafcuttr_sdk.trouble import Complaints, exhausted, import_late
from support.descriptors import none_left

EMFILE = os.strerror(errno.EMFILE)


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to import from; what was imported from it is forgotten."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in sys.modules.keys() - before:
        del sys.modules[name]


def write(folder: Path, **modules: str) -> None:
    folder.mkdir(parents=True)
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    importlib.invalidate_caches()


def test_nothing_is_begun_without_descriptors_and_the_next_try_works(packages: Path) -> None:
    write(packages / "late_whole", __init__="from late_whole import part\n", part="here = True\n")
    for spare in (0, 1):
        with none_left(spare):
            with pytest.raises(OSError) as raised:
                import_late("late_whole")
            assert exhausted(raised.value) == EMFILE
            assert not [name for name in sys.modules if name.startswith("late_whole")]
    import_late("late_whole")
    assert sys.modules["late_whole"].part.here


def test_of_a_package_that_fails_half_way_nothing_stays(packages: Path) -> None:
    """Another thread may take the last descriptor meanwhile. Of its two halves the first would stay as an orphan: no
    attribute of the package that the next import makes, and known to a registry that is not the next one's."""
    write(
        packages / "late_halves",
        __init__="import late_halves.registry\nimport late_halves.one\nimport late_halves.two\n",
        registry="known = []\n",
        one="from late_halves.registry import known\nassert not known\nknown.append(1)\n"
        "import late_thief\nlate_thief.take()\n",
        two="from late_halves.registry import known\nassert known == [1]\n",
    )
    (packages / "late_thief.py").write_text(
        "import os\ntaken = []\nthief = True\n"
        "def take():\n    try:\n        while thief:\n            taken.append(os.dup(0))\n"
        "    except OSError:\n        pass\n"
    )
    importlib.invalidate_caches()
    import late_thief  # type: ignore[import-not-found]

    with none_left(3):
        with pytest.raises(OSError) as raised:
            import_late("late_halves")
        assert exhausted(raised.value) == EMFILE
        for descriptor in late_thief.taken:
            os.close(descriptor)
    late_thief.thief = False
    assert not [name for name in sys.modules if name.startswith("late_halves")]
    import_late("late_halves")
    package = sys.modules["late_halves"]
    assert package.one.known is package.registry.known
    assert package.registry.known == [1]


def test_a_package_with_an_extension_module_is_there_at_the_next_try() -> None:
    """In a process of its own, which has imported neither cramjam nor json."""
    program = """
import os, sys
from leafcuttr_sdk.trouble import exhausted, import_late
from support.descriptors import none_left
assert not {"cramjam", "_decimal", "decimal"} & sys.modules.keys()
with none_left(1):
    for name in ("cramjam", "decimal"):
        try:
            import_late(name)
        except OSError as error:
            assert exhausted(error)
        else:
            raise AssertionError(name)
with none_left(0):
    try:
        import _decimal
    except (ImportError, OSError) as error:  # the words of the linker, or a folder that cannot be listed
        assert exhausted(error), error
    else:
        raise AssertionError("_decimal is no extension module here")
import_late("cramjam", "decimal")
import cramjam, decimal, _decimal
assert cramjam.gzip.decompress(cramjam.gzip.compress(b"x"))
assert decimal.Decimal is _decimal.Decimal, "decimal runs in pure Python for good"
"""
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_what_a_process_has_run_out_of() -> None:
    threading.stack_size(1 << 46)
    try:
        with pytest.raises(RuntimeError) as no_thread:
            threading.Thread(target=print).start()
    finally:
        threading.stack_size(0)
    assert exhausted(no_thread.value) == "can't start new thread"
    assert exhausted(BlockingIOError(errno.EAGAIN, "no process")) == os.strerror(errno.EAGAIN)
    assert exhausted(ExceptionGroup("", [OSError(errno.EMFILE, ""), OSError(errno.EMFILE, "")])) == EMFILE
    assert exhausted(ExceptionGroup("", [OSError(errno.EMFILE, ""), ValueError()])) is None
    for other in (
        OSError(errno.ENOSPC, ""),
        OSError("no number"),
        RuntimeError("no"),
        ImportError("no such module"),
    ):
        assert exhausted(other) is None


def test_a_trouble_that_lasts_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    complain = Complaints(logging.getLogger("leafcuttr.test"))
    for number in range(3):
        complain("key", "again %d", number)
        complain("other", "other %d", number)
    assert [record.getMessage() for record in caplog.records] == ["again 0", "other 0"]

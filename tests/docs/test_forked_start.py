"""`support.forked_start`: what it starts behaves as what an interpreter of its own starts."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from support.broker_process import clean_environ, running_broker, start_broker
from support.forked_start import _is_forkable, run_leafcuttr

PLUGIN = """
import os, sys
from leafcuttr_sdk import Plugin

PLUGIN = Plugin({name!r}, 1, os.environ["WORD"] + " " + os.getcwd() + " " + sys.argv[1])
"""


@pytest.mark.parametrize("fresh", [False, True])
def test_words_folder_environment_and_path_are_those_given(tmp_path: Path, fresh: bool) -> None:
    """The plugin of the folder that it is started in is seen, as with `-m`, and that of PYTHONPATH."""
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "acme.py").write_text(PLUGIN.format(name="acme") + "import of_the_path\n")
    site = tmp_path / "site"
    site.mkdir()
    (site / "of_the_path.py").touch()
    environ = clean_environ({"WORD": "given", "PYTHONPATH": str(site), "KAFKA_LC_PLUGINS_PATH": str(plugins)})
    ran = run_leafcuttr(["plugins", "list", "--json"], environ=environ, cwd=tmp_path, fresh=fresh)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert f'"given {tmp_path} plugins"' in ran.stdout


@pytest.mark.long
def test_streams_and_status(tmp_path: Path) -> None:
    ran = run_leafcuttr(["--version"])
    assert (ran.returncode, ran.stderr) == (0, "") and ran.stdout.startswith("leafcuttr, version ")
    ran = run_leafcuttr(["--nonsense"])
    assert ran.returncode == 2 and ran.stdout == "" and "--nonsense" in ran.stderr
    file = tmp_path / "passwords"
    ran = run_leafcuttr(["http", "passwd", str(file), "alice", "--stdin"], stdin=b"secret\n")
    assert ran.returncode == 0, ran.stderr
    assert file.read_text().startswith("alice:")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_broker_is_a_child_of_this_process_and_hears_signals(tmp_path: Path, how: signal.Signals) -> None:
    broker = start_broker(tmp_path)
    status = Path(f"/proc/{broker.process.pid}/status").read_text()
    assert f"\nPPid:\t{os.getpid()}\n" in status
    assert broker.about["pid"] == broker.process.pid
    assert broker.stop(how) == (-signal.SIGKILL if how == signal.SIGKILL else 0)
    assert not Path(f"/proc/{broker.process.pid}").exists()


def test_what_it_is_armed_with_is_read_anew(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="status -9"):
        start_broker(tmp_path, environ={"LEAFCUTTR_CRASH_POINT": "start.loaded"})
    with running_broker(tmp_path):
        pass


def test_an_environment_that_changes_the_interpreter_takes_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _is_forkable(os.environ)
    assert _is_forkable({**os.environ, "PYTHONPATH": str(tmp_path), "WORD": "x"})
    assert not _is_forkable({**os.environ, "PYTHONVERBOSE": "1"})
    assert not _is_forkable({**os.environ, "LD_PRELOAD": "libfaketime.so"})
    (tmp_path / "sitecustomize.py").touch()
    assert not _is_forkable({**os.environ, "PYTHONPATH": str(tmp_path)})
    # One that this process has as well is that of the process that forks, too.
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert _is_forkable(os.environ)

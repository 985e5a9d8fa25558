"""The setting that switches forwarding on."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from leafcuttr.cli.config.command import command
from leafcuttr.plugins.catalogue import examine_all
from leafcuttr.plugins.loaded import PluginState

SAMPLE = (Path(__file__).parent / "mm2" / "edge-to-hub.properties").read_text()


@pytest.mark.setting("lc.topic.forward.config")
def test_a_file_switches_it_on(tmp_path: Path) -> None:
    file = tmp_path / "mirror.properties"
    file.write_text("clusters=a,b\na.bootstrap.servers=x:1\nb.bootstrap.servers=y:1\n")
    _, _, plugins = examine_all(None, {}, [f"lc.topic.forward.config={file}"])
    found = plugins.get("forward")
    assert found is not None
    assert found.state is PluginState.ENABLED


def test_it_is_off_without_one() -> None:
    _, _, plugins = examine_all(None, {})
    found = plugins.get("forward")
    assert found is not None
    assert found.state is PluginState.OFF


def test_the_file_is_checked_line_by_line(tmp_path: Path) -> None:
    file = tmp_path / "mirror.properties"
    file.write_text(
        "clusters = a, b\na.bootstrap.servers = x:1\nb.bootstrap.servers = y:1\na->b.enabled = yes\n"
        "replication.factor = two\ntasks.max = 3\nrefresh.topic.interval.seconds = 5\n"
    )
    _, findings, _ = examine_all(None, {}, [f"lc.topic.forward.config={file}"])
    assert [(finding.level.value, finding.line) for finding in findings] == [
        ("error", f"{file}:4: a->b.enabled=yes: allowed are true and false"),
        ("error", f"{file}:5: replication.factor=two: allowed is a whole number from -1 to 2147483647"),
        (
            "warning",
            f"{file}:7: refresh.topic.interval.seconds: no key of MirrorMaker's, and it has no effect; did you mean "
            "refresh.topics.interval.seconds?",
        ),
        (
            "note",
            f"{file}:6: tasks.max=3: no meaning here: One process copies all; there are no tasks to distribute.",
        ),
    ]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    _, findings, _ = examine_all(None, {}, [f"lc.topic.forward.config={tmp_path / 'none'}"])
    (finding,) = findings
    assert finding.line == f"{tmp_path}/none: No such file or directory; allowed is a file of MirrorMaker 2"


@pytest.mark.parametrize(
    ("text", "status", "lines"),
    [
        (SAMPLE, 0, ["note:    {file}:6: key.converter="]),
        (SAMPLE.replace("replication.factor = 1", "replication.factor = one"), 1, ["error:   {file}:8: "]),
    ],
    ids=["right", "wrong"],
)
def test_config_check_reads_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, status: int, lines: list[str]
) -> None:
    monkeypatch.delenv("KAFKA_LC_TOPIC_FORWARD_CONFIG", raising=False)
    file, server = tmp_path / "mirror.properties", tmp_path / "server.properties"
    file.write_text(text)
    server.write_text(f"lc.topic.forward.config={file}\n")
    done = CliRunner().invoke(command, ["check", str(server)])
    assert done.exit_code == status, done.output
    for line in lines:
        assert line.replace("{file}", str(file)) in done.output

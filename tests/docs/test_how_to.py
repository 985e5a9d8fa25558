"""The commands of the how-to pages, run as they stand there, and what the pages say beside."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support import librdkafka
from support.broker_process import running_broker
from support.loop_disk import loop_disk
from support.pages import DOCS, run_page

KAFKA_DIRECTORY = Path(__file__).parents[1] / "log" / "fixtures" / "kafka-4.3.1"
pytestmark = pytest.mark.skipif(not shutil.which("bash"), reason="the commands are for bash")


@pytest.mark.long
def test_back_up_and_move(tmp_path: Path) -> None:
    """All three copies, the restored directory and the moved one are read by the page's own commands."""
    assert run_page("how-to/backup-and-move.md", tmp_path) >= 13
    sealed, live = tmp_path / "backup" / "sealed", tmp_path / "leafcuttr-data"
    assert not list(sealed.glob("__*"))
    with running_broker(tmp_path / "again", {"log.dirs": str(tmp_path / "restored")}) as broker:
        ends = []
        for partition in (0, 1):
            folder = f"orders-{partition}"
            *older, newest = sorted(path.name for path in (live / folder).glob("*.log"))
            kept = sorted(path.name for path in (sealed / folder).glob("*.log") if path.stat().st_size)
            assert kept == older, "all but the newest segment"
            ends.append(int(Path(newest).stem))
            assert librdkafka.watermarks(broker.address, "orders", partition) == (0, ends[-1])
    assert any(ends)


def test_a_snapshot_of_a_frozen_file_system(tmp_path: Path) -> None:
    """What was acknowledged before the freeze is in the copy, which was made while the broker went on."""
    if not shutil.which("fsfreeze"):
        pytest.skip("fsfreeze is not here")
    with loop_disk(tmp_path) as disk:
        settings = {"log.dirs": str(disk.folder / "data"), "lc.log.min.free.bytes": "0"}
        with running_broker(tmp_path / "broker", settings) as broker:
            librdkafka.create(broker.address, "orders")
            values = [b"%d" % number for number in range(5000)]
            librdkafka.send(broker.address, "orders", values, timestamp=1_700_000_000_000)
            subprocess.run(["fsfreeze", "--freeze", disk.folder], check=True)
            try:
                shutil.copyfile(tmp_path / "disk.img", tmp_path / "snapshot.img")
            finally:
                subprocess.run(["fsfreeze", "--unfreeze", disk.folder], check=True)
            librdkafka.send(broker.address, "orders", [b"later"], timestamp=1_700_000_000_000)
        mounted = tmp_path / "mounted"
        mounted.mkdir()
        subprocess.run(["mount", "-o", "loop", tmp_path / "snapshot.img", mounted], check=True)
        try:
            settings["log.dirs"] = str(mounted / "data")
            with running_broker(tmp_path / "second", settings) as broker:
                read = [message.value() for message in librdkafka.read(broker.address, "orders", 5000)]
                assert read == values
                assert librdkafka.watermarks(broker.address, "orders") == (0, 5000)
        finally:
            subprocess.run(["umount", mounted], check=True)


@pytest.mark.long
def test_migrate_from_kafka(tmp_path: Path) -> None:
    """The folders are those that Apache Kafka wrote for the tests of the log."""
    shutil.copytree(KAFKA_DIRECTORY, tmp_path / "kafka-data")
    assert run_page("how-to/migrate-from-kafka.md", tmp_path) >= 14


@pytest.mark.long
def test_acls(tmp_path: Path) -> None:
    assert run_page("how-to/acls.md", tmp_path) >= 5


@pytest.mark.long
def test_log_in(tmp_path: Path) -> None:
    assert run_page("how-to/log-in.md", tmp_path) >= 6


@pytest.mark.long
def test_from_open_to_secured(tmp_path: Path) -> None:
    assert run_page("tutorial/secure.md", tmp_path) >= 7


@pytest.mark.long
def test_quotas(tmp_path: Path) -> None:
    assert run_page("how-to/quotas.md", tmp_path) >= 2


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not here")
def test_tls(tmp_path: Path) -> None:
    assert run_page("how-to/tls.md", tmp_path) >= 7


@pytest.mark.one_in(6)
@pytest.mark.parametrize(
    ("page", "parts"),
    [
        ("embed.md", 2),
        ("plugins.md", 7),
        ("plugin-services.md", 8),
        pytest.param("plugin-children.md", 3, marks=pytest.mark.long),
        ("plugin-examples.md", 8),
        ("plugin-ports.md", 4),
        ("plugin-batches.md", 8),
        ("plugin-producer.md", 4),
        ("plugin-transactions.md", 4),
        ("peers.md", 6),
        ("plugin-monitoring.md", 4),
        ("plugin-commands.md", 5),
        ("record-filters.md", 6),
        ("filters.md", 6),
        ("forward.md", 5),
        ("relay.md", 7),
        ("produce-validators.md", 6),
    ],
)
def test_of_plugins_and_programs(tmp_path: Path, page: str, parts: int) -> None:
    assert run_page(f"how-to/{page}", tmp_path) >= parts


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("page", "parts"), [("consume-over-http.md", 8), ("consume-in-process.md", 1)])
def test_consume(tmp_path: Path, page: str, parts: int) -> None:
    assert run_page(f"how-to/{page}", tmp_path) >= parts


def without_code(page: Path) -> str:
    """A rule for names of Kerberos looks like a link there."""
    return re.sub(r"`[^`\n]+`", "", page.read_text(encoding="utf-8"))


def test_the_pages_link_to_what_is_there() -> None:
    for page in (DOCS / "how-to").glob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", without_code(page)):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_test_that_a_page_names_exists() -> None:
    tests = Path(__file__).parents[1]
    for page in (DOCS / "how-to").glob("*.md"):
        for name in re.findall(r"`(?:tests/)?([a-z_/]+\.py)`", page.read_text(encoding="utf-8")):
            assert (tests / name).exists() or (tests.parent / name).exists(), f"{page.name}: {name}"


def test_blocks_that_are_not_run_say_why() -> None:
    for page in (DOCS / "how-to").glob("*.md"):
        for words in re.findall(r"<!-- not run(.*?)-->", page.read_text(encoding="utf-8")):
            assert re.match(r": \w+", words), f"{page.name}: {words}"

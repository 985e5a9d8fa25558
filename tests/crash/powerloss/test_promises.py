"""What a witness of the time before the cut holds against folders that no topic has."""

from __future__ import annotations

from pathlib import Path

import pytest

from crash.powerloss.promises import Witness
from crash.powerloss.told import Partition, Told, Topic
from leafcuttr.log.layout.folders import make_folder

PLAIN: dict[str, str] = {}
SYNC = {"lc.log.sync.always": "true"}


def left(data: Path, *, has_id: bool, config: dict[str, str], partitions: int) -> set[Path]:
    """What is excused where the folder t-1 is there, and the topic t has so many partitions."""
    folder = data / "t-1"
    make_folder(folder, bytes(range(16)))
    if not has_id:
        (folder / "partition.metadata").unlink()
    told = Told(topics={"t": Topic(partitions > 0, config, [Partition() for _ in range(partitions)])})
    witness = Witness(told, told, synced=False)
    witness._no_strays(data, {"t": partitions} if partitions else {})
    return witness.left_behind


@pytest.mark.parametrize("partitions", [0, 1])
def test_a_folder_that_does_not_say_whose_it_was_may_stay(tmp_path: Path, partitions: int) -> None:
    """Also one of a topic that has come back with fewer partitions."""
    assert left(tmp_path, has_id=False, config=PLAIN, partitions=partitions) == {tmp_path / "t-1"}


@pytest.mark.parametrize("partitions", [0, 1])
@pytest.mark.parametrize(("has_id", "config"), [(True, PLAIN), (True, SYNC), (False, SYNC)])
def test_another_may_not(tmp_path: Path, has_id: bool, config: dict[str, str], partitions: int) -> None:
    with pytest.raises(AssertionError, match="the folder of t-1, which is not there"):
        left(tmp_path, has_id=has_id, config=config, partitions=partitions)


def test_that_of_a_partition_is_no_stray(tmp_path: Path) -> None:
    assert left(tmp_path, has_id=True, config=PLAIN, partitions=2) == set()

"""A real Kafka that is killed while it holds data: its folders are adopted, and every record is read back."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from leafcuttr.log.layout.checkpoints import read_offsets
from leafcuttr.offline.adopt import plan_adoption, take_in
from leafcuttr.offline.verify import KnownTopic, segment_offsets, verify_directory
from leafcuttr.wire.batch import parse
from leafcuttr.wire.records import decode_records
from leafcuttr_sdk import TopicPartition
from support import jars
from support.real_kafka import real_kafka

COUNT = 3000


@pytest.mark.long
@pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))
def test_a_killed_kafkas_topic_is_adopted_whole(tmp_path: Path) -> None:
    with real_kafka(tmp_path / "kafka") as address:
        produce(str(address))
    source, target = tmp_path / "kafka" / "data", tmp_path / "ours"
    target.mkdir()
    plan = plan_adoption(source, {}, ["made-by-kafka"])
    assert plan.refused == []
    (topic,) = plan.topics
    assert len(topic.folders) == 2
    take_in(plan, source, target)
    checked = verify_directory(target, deep=True, topics={"made-by-kafka": KnownTopic(topic.id, 2, False)})
    assert checked.problems == []
    values = []
    for partition in (0, 1):
        folder = target / f"made-by-kafka-{partition}"
        for base in segment_offsets(folder):
            content, at = (folder / f"{base:020d}.log").read_bytes(), 0
            while at < len(content):
                header = parse(content, at)
                if not header.is_control:
                    values += [
                        int(record.value or b"") for record in decode_records(content[at : at + header.size])
                    ]
                at += header.size
    assert sorted(values) == list(range(COUNT))
    points = read_offsets(target / "recovery-point-offset-checkpoint")
    assert points == {TopicPartition("made-by-kafka", number): topic.ends[number] for number in (0, 1)}
    shutil.rmtree(tmp_path / "kafka")


def produce(address: str) -> None:
    """In a process of its own: librdkafka's threads would complain of the broker that is killed."""
    code = f"""
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
admin = AdminClient({{"bootstrap.servers": {address!r}}})
admin.create_topics([NewTopic("made-by-kafka", 2)])["made-by-kafka"].result()
for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
    producer = Producer({{"bootstrap.servers": {address!r}, "transactional.id": codec, "compression.type": codec}})
    producer.init_transactions()
    part = {COUNT} // 5
    first = part * ("none", "gzip", "snappy", "lz4", "zstd").index(codec)
    producer.begin_transaction()
    for number in range(first, first + part):
        producer.produce("made-by-kafka", str(number), str(number), partition=number % 2)
    producer.commit_transaction()
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=250)

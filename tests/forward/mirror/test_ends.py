"""`host:port[,host:port][/topic]`, and files of client properties."""

from pathlib import Path

import pytest

from leafcuttr_forward.mirror.ends import MirrorEnd, parse_end, properties_of
from leafcuttr_sdk.errors import PluginError


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("edge:9092", MirrorEnd("edge:9092", None)),
        ("edge", MirrorEnd("edge:9092", None)),
        ("a:1,b:2/orders", MirrorEnd("a:1,b:2", "orders")),
        ("[::1]:9092/a.b-c_d", MirrorEnd("[::1]:9092", "a.b-c_d")),
    ],
)
def test_ends(text: str, end: MirrorEnd) -> None:
    assert parse_end(text) == end


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/orders",
        "edge:9092/",
        "edge:9092/a/b",
        "edge:9092/a b",
        "edge:9092/..",
        "kafka://edge:9092",
        "edge:x",
        "edge:1,,b:2",
        ":9092",
        "this broker",
    ],
)
def test_what_is_no_end(text: str) -> None:
    with pytest.raises(ValueError):
        parse_end(text)


def test_properties_of_a_file_with_the_addresses_of_the_line(tmp_path: Path) -> None:
    file = tmp_path / "hub.properties"
    file.write_text("# how\nbootstrap.servers=other:1\nsecurity.protocol = SSL\nclient.id=c\n")
    found = properties_of(MirrorEnd("hub:9093", None), str(file))
    assert found == {"bootstrap.servers": "hub:9093", "security.protocol": "SSL", "client.id": "c"}
    assert properties_of(MirrorEnd("a:1", None), None) == {
        "bootstrap.servers": "a:1",
        "client.id": "leafcuttr-mirror",
    }


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for path, data in ((tmp_path / "none", None), (tmp_path / "latin", b"a=\xff")):
        if data is not None:
            path.write_bytes(data)
        with pytest.raises(PluginError, match=f"^{path} cannot be read: "):
            properties_of(MirrorEnd("a:1", None), str(path))

"""Discovery by entry points finds what importlib.metadata finds, wherever it is installed."""

from __future__ import annotations

import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.plugins import entry_points
from support.plugin_folders import install


def test_ours_come_first_then_by_distribution(site: Path) -> None:
    install(site, "zebra")
    install(site, "apple", distribution="Acme.Plugins", version="3.0.1")
    install(site, "bundled", distribution="leafcuttr", version="9")
    found = entry_points.candidates([str(site)])
    assert [(one.name, one.module, str(one.origin)) for one in found] == [
        ("bundled", "bundled_plugin", "leafcuttr 9"),
        ("apple", "apple_plugin", "Acme.Plugins 3.0.1"),
        ("zebra", "zebra_plugin", "leafcuttr-zebra 1.2"),
    ]
    assert [one.origin.bundled for one in found] == [True, False, False]
    assert {one.origin.place for one in found} == {str(site)}


def test_first_on_the_path_hides_the_same_distribution_behind_it(site: Path, tmp_path: Path) -> None:
    install(site, "acme", distribution="acme_plugin", version="2")
    install(tmp_path / "behind", "acme", distribution="acme-plugin", version="1")
    found = entry_points.candidates([str(site), str(tmp_path / "behind")])
    assert [str(one.origin) for one in found] == ["acme_plugin 2"]


def test_a_zip_file_on_the_path_is_read_too(site: Path, tmp_path: Path) -> None:
    install(site, "acme")
    packed = tmp_path / "packed.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for file in site.rglob("*"):
            archive.write(file, file.relative_to(site))
    (found,) = entry_points.candidates([str(packed)])
    assert (found.name, found.module, str(found.origin)) == ("acme", "acme_plugin", "leafcuttr-acme 1.2")


def test_folders_that_are_not_there_or_cannot_be_read_hold_no_plugins(tmp_path: Path) -> None:
    (tmp_path / "odd-1.dist-info").write_text("a file")
    assert entry_points.candidates([str(tmp_path / "nowhere"), str(tmp_path)]) == []


def test_egg_info_of_an_old_editable_install(tmp_path: Path) -> None:
    info = tmp_path / "acme_plugins.egg-info"
    info.mkdir()
    (info / "PKG-INFO").write_text("Name: acme-plugins\nVersion: 0.1.dev0\n")
    (info / "entry_points.txt").write_text("[leafcuttr.plugins]\nacme = acme\n")
    (found,) = entry_points.candidates([str(tmp_path)])
    assert str(found.origin) == "acme-plugins 0.1.dev0"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "[leafcuttr.plugins]\nacme=acme.plugin\n  other  =  other_module  \n",
            [("acme", "acme.plugin"), ("other", "other_module")],
        ),
        ("[leafcuttr.plugins.more]\nacme = acme\n", []),
        ("[leafcuttr.plugins]\n# a = b\n\nacme = acme # why\n[console_scripts]\nx = y\n", [("acme", "acme")]),
        ("[console_scripts]\nleafcuttr.plugins = y\n", []),
    ],
)
def test_parse(text: str, lines: list[tuple[str, str]]) -> None:
    assert list(entry_points.parse(text)) == lines


def test_as_importlib_metadata_finds_them_in_this_environment(site: Path) -> None:
    install(site, "acme")
    expected = {(entry.name, entry.value) for entry in metadata.entry_points(group=entry_points.GROUP)}
    assert {(one.name, one.module) for one in entry_points.candidates(sys.path)} == expected
    assert ("acme", "acme_plugin") in expected


_NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)
_SECTIONS = st.sampled_from(["leafcuttr.plugins", "console_scripts", "leafcuttr.plugins.more", "pytest11"])
_LINES = st.one_of(
    st.builds(
        "{} = {}".format, _NAMES, st.from_regex(r"[a-z_]{1,8}(\.[a-z_]{1,8})?(:[a-z]{1,4})?", fullmatch=True)
    ),
    st.just(""),
    st.builds("# {} = {}".format, _NAMES, _NAMES),
)


@given(
    sections=st.lists(
        st.tuples(_SECTIONS, st.lists(_LINES, max_size=4)), max_size=4, unique_by=lambda section: section[0]
    )
)
def test_any_file_is_read_as_importlib_metadata_reads_it(
    tmp_path_factory: pytest.TempPathFactory, sections: list[tuple[str, list[str]]]
) -> None:
    text = "".join(f"[{name}]\n" + "".join(f"{line}\n" for line in lines) for name, lines in sections)
    info = tmp_path_factory.mktemp("site") / "acme-1.0.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text(text)
    (info / "METADATA").write_text("Name: acme\nVersion: 1.0\n")
    expected = metadata.PathDistribution(info).entry_points.select(group=entry_points.GROUP)
    assert list(entry_points.parse(text)) == [(entry.name, entry.value) for entry in expected]
    found = entry_points.candidates([str(info.parent)])
    assert sorted((one.name, str(one.module)) for one in found) == sorted((e.name, e.value) for e in expected)

"""The committed page of settings is the one that the tables make, with those of the plugins that come with us."""

from pathlib import Path

from leafcuttr.plugins.settings_page import bundled, page

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"


def test_the_page_is_that_of_the_tables() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "run: python -m leafcuttr.plugins.settings_page > docs/reference/settings.md"
    )


def test_every_bundled_plugin_is_on_it() -> None:
    names = [one.name for one in bundled().all if one.settings]
    assert "http" in names
    assert all(f"## Plugin {name}\n" in PAGE.read_text(encoding="utf-8") for name in names)

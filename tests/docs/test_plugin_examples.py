"""Every plugin on a page passes `leafcuttr plugins check`, as a reader would run it: no finding, and no option needed.

The examples are found in the pages by their `PLUGIN`. One that a page makes longer, as the tutorial does by `cat >>`,
is checked each time.
"""

from __future__ import annotations

import json
import re
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from leafcuttr.cli.root import cli
from leafcuttr_sdk.testing import RunningBroker, running_broker
from support.pages import DOCS
from support.waiting import until

_FENCE = re.compile(r"^```(?:sh|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"cat (>>?) (\S+\.py) <<'(\w+)'\n(.*?)^\3$", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"""^PLUGIN = Plugin\(\s*(?:name=)?"([a-z0-9-]+)\"""", re.MULTILINE)


def examples(page: Path) -> Iterator[tuple[str, str]]:
    """(name of the file, source) of each plugin of a page."""
    files: dict[str, str] = {}
    for block in _FENCE.findall(page.read_text(encoding="utf-8")):
        found = _FILE.findall(block)
        for how, path, _, text in found:
            files[path] = files.get(path, "") + text if how == ">>" else text
            if _NAME.search(files[path]):
                yield Path(path).name, files[path]
        if not found and (name := _NAME.search(block)):
            yield f"{name[1].replace('-', '_')}.py", block


PAGES = sorted(page for page in DOCS.rglob("*.md") if "changes" not in page.parts)
EXAMPLES = [
    pytest.param(name, source, id=f"{page.relative_to(DOCS)}-{name}")
    for page in PAGES
    for name, source in examples(page)
]


def test_all_examples_are_found() -> None:
    """Each `PLUGIN` of a page, and those that the pages of hooks and the pages for authors have."""
    there = sum(len(_NAME.findall(page.read_text(encoding="utf-8"))) for page in PAGES)
    assert there >= 18
    assert len({str(one.values[1]) for one in EXAMPLES}) >= there
    assert {"doorbell.py", "greeter.py", "heartbeat.py", "keyed.py", "meter.py", "owners.py", "tidy.py"} <= {
        one.values[0] for one in EXAMPLES
    }


@pytest.mark.one_in(6)
@pytest.mark.parametrize(("name", "source"), EXAMPLES)
def test_it_passes_the_check(name: str, source: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(source, encoding="utf-8")
    before = set(sys.modules)
    done = CliRunner().invoke(cli, ["plugins", "check", str(tmp_path / name)])
    for module in set(sys.modules) - before:
        if module.startswith("leafcuttr_plugin_"):
            del sys.modules[module]
    assert done.exit_code == 0, done.output
    assert done.output.endswith(" 0 problems\n")


def detail(broker: RunningBroker, check: str) -> str:
    with urllib.request.urlopen(f"{broker.admin_url}/health", timeout=60) as answer:
        return str(json.load(answer)["checks"][check]["detail"])


def test_two_brokers_in_one_process_share_nothing_of_it(tmp_path: Path) -> None:
    """The plugin of the page that says how: each broker's health check shows what its own service has read."""
    (source,) = (one.values[1] for one in EXAMPLES if one.values[0] == "prices.py")
    module = ModuleType("prices")
    exec(str(source), vars(module))
    with (
        running_broker(tmp_path / "one", plugins=[module]) as one,
        running_broker(tmp_path / "two", plugins=[module]) as two,
    ):
        one.produce("prices", "3", key="tea")
        until(lambda: detail(one, "prices:caught-up").startswith("1 known"), "the first has read it")
        two.produce("prices", "4", key="coffee")
        two.produce("prices", "5", key="milk")
        until(lambda: detail(two, "prices:caught-up").startswith("2 known"), "the second has read its own")
        assert detail(one, "prices:caught-up").startswith("1 known")

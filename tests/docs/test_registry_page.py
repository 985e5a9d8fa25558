"""docs/how-to/registry.md as it is typed, and what it says beside."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import leafcuttr_registry
from leafcuttr_registry.validation.settings import topic_settings
from leafcuttr_sdk.testing import running_broker
from support.pages import DOCS, run_page
from support.registry import SETTINGS

if TYPE_CHECKING:
    from leafcuttr_sdk import Broker

PAGE = "how-to/registry.md"


@pytest.mark.skipif(
    not (shutil.which("bash") and shutil.which("curl")), reason="the commands are for bash and curl"
)
@pytest.mark.long
def test_the_commands_do_what_the_page_shows(tmp_path: Path) -> None:
    assert run_page(PAGE, tmp_path) >= 12


def test_settings_that_are_named_exist() -> None:
    known = {
        setting.name for setting in (*leafcuttr_registry.leafcuttr_register_settings(), *topic_settings())
    }
    text = (DOCS / PAGE).read_text()
    named = set(re.findall(r"(?<![\w.])((?:lc\.schema|confluent)\.[a-z.]*[a-z])(?=[=` ])", text))
    assert len(named) >= 8
    assert named <= known
    assert {each for each in known if ".validation" in each and "confluent" not in each} <= named


def test_the_code_for_plugins(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", (DOCS / PAGE).read_text(), re.DOTALL):
        exec(code, names)

    async def call(broker: Broker) -> Any:
        return await names["register"](broker)

    with running_broker(tmp_path, SETTINGS, ["registry"]) as broker:
        assert broker.call(call) == (1, "tea")
        address = broker.listeners["lc.schema.registry"].rpartition("/")[2]
        found = names["latest"](f"http://{address}")
        assert (found.version, found.schema.id, found.schema.text) == (1, 1, '"string"')

"""The plugin of docs/how-to/plugin-security.md, in a broker with an authorizer and a quota."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import Any

from leafcuttr_sdk.testing import running_broker
from support.pages import DOCS

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:alice",
}


def test_what_the_page_says(tmp_path: Path) -> None:
    (source,) = re.findall(
        r"```python\n(.*?)```", (DOCS / "how-to/plugin-security.md").read_text(), re.DOTALL
    )
    module = ModuleType("letterbox")
    exec(compile(source, "letterbox.py", "exec"), vars(module))

    async def use(view: Any) -> None:
        box = module.Letterbox(view)
        await view.topics.create("letters")
        assert await box.put("bob", b"x") == "no: User:bob may not WRITE topic letters"
        assert await box.put("alice", b"dear") == "stored, come back in 0 s"
        assert (box.may_look("alice"), box.may_look("bob")) == (True, False)
        await view._core.quotas.alter({(("user", "alice"),): {"producer_byte_rate": 10}})
        assert re.fullmatch("stored, come back in [1-9][0-9]* s", await box.put("alice", bytes(1000)))

    with running_broker(tmp_path, SETTINGS, [module]) as broker:
        broker.call(use)

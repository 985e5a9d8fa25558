"""Changes of topics, as the handlers make them."""

from __future__ import annotations

from collections.abc import Mapping

from leafcuttr.state.topics import Topics


async def alter_config(topics: Topics, name: str, changes: Mapping[str, str | None]) -> None:
    """Change settings of a topic; None puts one back to the broker's. Raises as `Topics.edit_config`."""

    def edit(overrides: Mapping[str, str]) -> Mapping[str, str]:
        merged: dict[str, str | None] = {**overrides, **changes}
        return {key: value for key, value in merged.items() if value is not None}

    await topics.edit_config(name, edit)

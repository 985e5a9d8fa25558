"""Config and mode as they hold for a subject: its own, else that of its context, else the global ones. The order is
that of Confluent's registry."""

from typing import Final

from leafcuttr_registry.subjects.config import DEFAULT, Config
from leafcuttr_registry.subjects.names import DEFAULT as DEFAULT_CONTEXT
from leafcuttr_registry.subjects.names import GLOBAL, context_of, qualified, split
from leafcuttr_registry.subjects.state import State

READWRITE: Final = "READWRITE"
READONLY: Final = "READONLY"
READONLY_OVERRIDE: Final = "READONLY_OVERRIDE"
IMPORT: Final = "IMPORT"
FORWARD: Final = "FORWARD"
MODES: Final = (READWRITE, READONLY, READONLY_OVERRIDE, IMPORT, FORWARD)


def own_config(state: State, name: str | None) -> Config | None:
    """What is set for a subject or context itself; the global config is always there."""
    found = state.configs.get(name)
    if found is not None:
        return found.with_level()
    return DEFAULT if _is_global(name) else None


def config_of(state: State, name: str | None) -> Config:
    """What holds for it."""
    own = own_config(state, name)
    if name is None or own is None:
        return _first(state.configs, name) or DEFAULT
    return own.over(own_config(state, None) or DEFAULT)


def own_mode(state: State, name: str | None) -> str | None:
    """What is set for a subject or context itself; the global mode is always there."""
    found = state.modes.get(name)
    return found if found is not None else READWRITE if _is_global(name) else None


def mode_of(state: State, name: str | None) -> str:
    """What holds for it; a global READONLY_OVERRIDE is above all."""
    if state.modes.get(None) == READONLY_OVERRIDE:
        return READONLY_OVERRIDE
    found = state.modes.get(name)
    if found is not None:
        return found
    context = context_of(name)
    for scope in (None if context == DEFAULT_CONTEXT else qualified(context, ""), qualified(GLOBAL, "")):
        found = state.modes.get(scope)
        if found is not None:
            return found
    return READWRITE


def is_read_only(state: State, name: str | None) -> bool:
    """Whether nothing of it may change."""
    return mode_of(state, name) in (READONLY, READONLY_OVERRIDE)


def _first(configs: dict[str | None, Config], name: str | None) -> Config | None:
    context = context_of(name)
    for scope in (None if context == DEFAULT_CONTEXT else qualified(context, ""), qualified(GLOBAL, "")):
        found = configs.get(scope)
        if found is not None:
            return found.with_level()
    return None


def _is_global(name: str | None) -> bool:
    return name is None or split(name).context == GLOBAL

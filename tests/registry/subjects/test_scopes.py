"""Config and mode as they hold for a subject."""

from __future__ import annotations

from leafcuttr_registry.subjects import scopes
from leafcuttr_registry.subjects.config import Config
from leafcuttr_registry.subjects.state import State

FULL, NONE, FORWARD = (Config({"compatibilityLevel": level}) for level in ("FULL", "NONE", "FORWARD"))


def test_config() -> None:
    state = State()
    assert scopes.config_of(state, "a").level == scopes.config_of(state, None).level == "BACKWARD"
    assert scopes.own_config(state, "a") is None and scopes.own_config(state, None) is not None
    state.configs[None] = FULL
    assert scopes.config_of(state, "a") == FULL
    assert scopes.config_of(state, ":.c:a").level == "BACKWARD", "the default context's is its own"
    state.configs[":.__GLOBAL:"] = FORWARD
    assert scopes.config_of(state, ":.c:a") == FORWARD and scopes.config_of(state, "a") == FULL
    state.configs[":.c:"] = NONE
    assert scopes.config_of(state, ":.c:a") == NONE
    state.configs["a"] = FORWARD
    assert scopes.config_of(state, "a") == scopes.own_config(state, "a") == FORWARD


def test_what_a_config_inherits() -> None:
    state = State()
    state.configs[None] = Config({"compatibilityGroup": "g", "normalize": True, "alias": "x"})
    state.configs["a"] = Config({"compatibilityLevel": "FULL", "normalize": False})
    assert scopes.config_of(state, "a").members == {
        "normalize": False,
        "compatibilityLevel": "FULL",
        "compatibilityGroup": "g",
    }
    state.configs["b"] = Config({"alias": "y"})
    assert scopes.config_of(state, "b").level == "BACKWARD"


def test_mode() -> None:
    state = State()
    assert scopes.mode_of(state, "a") == scopes.own_mode(state, None) == "READWRITE"
    assert scopes.own_mode(state, "a") is None
    state.modes[None] = "READONLY"
    assert scopes.is_read_only(state, "a") and not scopes.is_read_only(state, ":.c:a")
    state.modes["a"] = "IMPORT"
    assert scopes.mode_of(state, "a") == "IMPORT"
    state.modes[":.c:"] = "READONLY"
    assert scopes.is_read_only(state, ":.c:a")
    state.modes[None] = "READONLY_OVERRIDE"
    assert scopes.is_read_only(state, "a")
    del state.modes[None], state.modes[":.c:"]
    state.modes[":.__GLOBAL:"] = "READONLY"
    assert scopes.is_read_only(state, "b") and scopes.is_read_only(state, ":.c:a")

"""Values that stand elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from leafcuttr_forward.mm2.planning import read_plan
from leafcuttr_forward.mm2.providers import resolver
from leafcuttr_sdk.properties import parse_properties

PACKAGE = "org.apache.kafka.common.config.provider."


def resolve_by(**providers: str) -> Callable[[str], str]:
    text = f"config.providers = {', '.join(providers)}\n"
    text += "".join(f"config.providers.{name}.class = {one}\n" for name, one in providers.items())
    return resolver(parse_properties(text))


def test_a_file(tmp_path: Path) -> None:
    (tmp_path / "secrets").write_text("pass = a\\u0062c\n")
    resolve = resolve_by(file=f"{PACKAGE}FileConfigProvider")
    assert resolve(f"x ${{file:{tmp_path}/secrets:pass}} y") == "x abc y"
    with pytest.raises(ValueError, match=r"secrets has no word$"):
        resolve(f"${{file:{tmp_path}/secrets:word}}")
    with pytest.raises(ValueError, match=r"none cannot be read: No such file or directory$"):
        resolve(f"${{file:{tmp_path}/none:word}}")


def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "pass").write_text("abc")
    (tmp_path / "out").write_text("secret")
    resolve = resolve_by(dir=f"{PACKAGE}DirectoryConfigProvider")
    assert resolve(f"${{dir:{tmp_path}/in:pass}}") == "abc"
    for key in ("../out", "none"):
        with pytest.raises(ValueError, match=f"in has no {key}$"):
            resolve(f"${{dir:{tmp_path}/in:{key}}}")


def test_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUB_PASSWORD", "abc")
    resolve = resolve_by(env=f"{PACKAGE}EnvVarConfigProvider")
    assert resolve("${env:HUB_PASSWORD}") == "abc"
    with pytest.raises(ValueError, match=r"the environment has no HUB_NONE$"):
        resolve("${env:HUB_NONE}")


def test_what_no_provider_has_is_left_as_it_is() -> None:
    assert resolver([])("${file:/x:y} $ {a}") == "${file:/x:y} $ {a}"


def test_a_class_of_somebody_else_is_refused() -> None:
    with pytest.raises(ValueError, match=r"its provider is my\.Vault; allowed are FileConfigProvider"):
        resolve_by(vault="my.Vault")("${vault:a:b}")


def test_a_fault_is_said_with_its_line(tmp_path: Path) -> None:
    text = (
        f"clusters = a, b\nconfig.providers = file\nconfig.providers.file.class = {PACKAGE}FileConfigProvider\n"
        f"a.bootstrap.servers = ${{file:{tmp_path}/none:a}}\nb.bootstrap.servers = y:1\n"
    )
    plan, said = read_plan(text, resolver(parse_properties(text)))
    assert plan is None
    assert [finding.of("f") for finding in said if finding.line == 4] == [
        f"f:4: a.bootstrap.servers=${{file:{tmp_path}/none:a}}: ${{file:{tmp_path}/none:a}}: {tmp_path}/none cannot "
        "be read: No such file or directory"
    ]

"""Values that are elsewhere, by Kafka's providers, and where those may not look."""

from __future__ import annotations

from pathlib import Path

import pytest

from leafcuttr_sdk.config_providers import ConfigProviders

PACKAGE = "org.apache.kafka.common.config.provider."


def providers(kind: str, **params: str) -> ConfigProviders:
    """One that is called `p`; `_` for `.` in the parameters."""
    given = {"config.providers": "p", "config.providers.p.class": f"{PACKAGE}{kind}ConfigProvider"}
    named = {f"config.providers.p.param.{name.replace('_', '.')}": value for name, value in params.items()}
    return ConfigProviders({**given, **named})


def why(found: ConfigProviders, value: str) -> str:
    with pytest.raises(ValueError, match=r"^\$\{|^its provider") as caught:
        found.resolve(value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """A file with properties, a folder with files, and a link out of it."""
    (tmp_path / "secrets.properties").write_text("pass = a\\u00fcc\nempty=\n", encoding="utf-8")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "pass").write_text("open sesame\n", encoding="utf-8")
    (tmp_path / "outside").write_text("pass=outside", encoding="utf-8")
    return tmp_path


def test_a_file(secrets: Path) -> None:
    file, found = secrets / "secrets.properties", providers("File")
    assert found.resolve(f"x ${{p:{file}:pass}} ${{p:{file}:empty}} y") == "x aüc  y"
    assert why(found, f"${{p:{file}:word}}") == f"${{p:{file}:word}}: {file} has no word"
    missing = f"${{p:{secrets}/none:a}}"
    assert why(found, missing) == f"{missing}: {secrets}/none cannot be read: No such file or directory"
    file.write_bytes(b"pass=\xff")
    assert why(found, f"${{p:{file}:pass}}").endswith("cannot be read: it is no UTF-8")


def test_a_folder(secrets: Path) -> None:
    """The whole file, as in Kafka; a key is no way out of the folder."""
    folder, found = secrets / "folder", providers("Directory")
    assert found.resolve(f"${{p:{folder}:pass}}") == "open sesame\n"
    for key in ("none", "../outside", "..", ".", ""):
        assert why(found, f"${{p:{folder}:{key}}}").endswith(f"{folder} has no {key}")


def test_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKER_PASSWORD", "abc")
    monkeypatch.setenv("OTHER", "abc")
    assert providers("EnvVar").resolve("<${p:OTHER}>") == "<abc>"
    found = providers("EnvVar", allowlist_pattern="BROKER_.*")
    assert found.resolve("${p:BROKER_PASSWORD}") == "abc"
    assert why(found, "${p:OTHER}") == "${p:OTHER}: OTHER is not allowed by param.allowlist.pattern"
    assert why(found, "${p:BROKER_NONE}") == "${p:BROKER_NONE}: the environment has no BROKER_NONE"
    assert "is no pattern" in why(providers("EnvVar", allowlist_pattern="("), "${p:OTHER}")


@pytest.mark.parametrize("kind", ["File", "Directory"])
def test_allowed_paths(secrets: Path, kind: str) -> None:
    inside = secrets / "inside"
    inside.mkdir()
    (inside / "a").write_text("k=v")
    (secrets / "inside2").mkdir()
    (secrets / "inside2" / "a").write_text("k=v")

    def value(path: str) -> str:
        return f"${{p:{path}/a:k}}" if kind == "File" else f"${{p:{path}:a}}"

    found = providers(kind, allowed_paths=f"{secrets}/folder, {inside}")
    assert found.resolve(value(str(inside))) in ("v", "k=v")
    assert found.resolve(value(f"{secrets}/inside2/../inside")) in ("v", "k=v")
    for path in (f"{secrets}/inside2", f"{inside}/../inside2", "inside"):
        assert why(found, value(path)).endswith("is not below one of param.allowed.paths")
    for wrong in ("relative", str(secrets / "missing")):
        assert f"{wrong} of param.allowed.paths " in why(
            providers(kind, allowed_paths=wrong), value(str(inside))
        )


def test_what_is_no_reference_stays() -> None:
    assert ConfigProviders({}).resolve("${p:/x:y}") == "${p:/x:y}"
    found = providers("File")
    for value in ("${q:/x:y}", "${p}", "$ {p:x:y}", "${}", "${p:x:y"):
        assert found.resolve(value) == value


def test_what_a_value_says_is_not_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A", "${p:B}")
    assert providers("EnvVar").resolve("${p:A}") == "${p:B}"


@pytest.mark.parametrize("kind", ["", "my.Vault", f"{PACKAGE}VaultConfigProvider"])
def test_other_classes(kind: str) -> None:
    found = ConfigProviders({"config.providers": "p", "config.providers.p.class": kind})
    assert found.resolve("nothing to look up") == "nothing to look up"
    assert why(found, "${p:a:b}") == (
        f"its provider is {kind or 'without a class'}; allowed are FileConfigProvider, DirectoryConfigProvider, "
        f"EnvVarConfigProvider of {PACKAGE}*"
    )

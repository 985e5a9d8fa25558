"""Whether there is a Java that Spark runs on."""

from __future__ import annotations

from pathlib import Path

import pytest

from leafcuttr_spark.operating.java import java_trouble, version_of


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ('openjdk version "17.0.9" 2023-10-17', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('Picked up _JAVA_OPTIONS: -Xmx1g\nopenjdk version "11.0.1"', 11),
        ("bash: java", None),
    ],
)
def test_versions(said: str, version: int | None) -> None:
    assert version_of(said) == version


def java(folder: Path, said: str) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    program.chmod(0o755)
    return folder


def test_one_that_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path, 'openjdk version "17.0.9"')))
    assert java_trouble() is None
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    assert java_trouble() is None


def test_others_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mend = ": install one, as openjdk-17-jre-headless, or let JAVA_HOME name its folder"
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path / "a", 'openjdk version "11.0.2"')))
    assert java_trouble() == f"Spark needs Java 17 or later, and {tmp_path}/a/bin/java is Java 11{mend}"
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path / "b", "hello")))
    assert (
        java_trouble() == f"Spark needs Java 17 or later, and {tmp_path}/b/bin/java is something else{mend}"
    )
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "c"))
    assert java_trouble() == (
        f"Spark needs Java 17 or later, and {tmp_path}/c/bin/java cannot be run (No such file or directory){mend}"
    )
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert java_trouble() == f"Spark needs Java 17 or later, and there is none{mend}"

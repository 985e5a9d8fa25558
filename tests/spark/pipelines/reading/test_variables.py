"""Variables: what they are filled with, what is a secret, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from leafcuttr_spark.pipelines.reading.variables import MOST_CHARACTERS, VariableError, Variables, nearest


def variables(
    declared: dict[str, str | None] | None = None,
    given: dict[str, str] | None = None,
    folder: Path = Path(),
    *,
    needs_secrets: bool = True,
) -> Variables:
    return Variables(declared or {}, given or {}, folder, needs_secrets=needs_secrets)


def refused(found: Variables, text: str) -> str:
    with pytest.raises(VariableError) as raised:
        found.fill(text)
    return str(raised.value)


def test_variables_of_the_file_and_those_that_are_set() -> None:
    found = variables({"region": "eu", "topic": "orders-${region}"}, {"region": "us"})
    assert found.fill("${topic}.${ region }$") == "orders-us.us$"


def test_what_is_set_is_no_template() -> None:
    assert variables({"a": None}, {"a": "${b}"}).fill("${a}") == "${b}"


def test_two_dollars_are_the_text_itself() -> None:
    assert variables().fill("$${a} $b $") == "${a} $b $"


def test_secrets_of_the_environment_and_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_TEST_SECRET", "sesame")
    (tmp_path / "password").write_text("open\n")
    found = variables({"p": "${env:LC_TEST_SECRET}"}, folder=tmp_path)
    assert (
        found.fill("${p}:${file:password}:${file:" + str(tmp_path / "password") + "}") == "sesame:open:open"
    )
    assert found.secrets == {"sesame", "open"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("${regoin}", "there is no variable regoin: did you mean region?"),
        ("${unset}", "the variable unset has no value: --set unset=..."),
        ("${a}", "variables go in a circle: a -> b -> a"),
        ("${env:LC_NOT_THERE}", "the environment has no LC_NOT_THERE"),
        ("${file:none}", "there is no file none"),
        ("${file:.}", "there is no file ."),
        ("${vault:x}", "${vault:x} is no variable; allowed: ${NAME}, ${env:NAME}, ${file:PATH}"),
    ],
)
def test_what_cannot_be_filled_in(text: str, why: str, tmp_path: Path) -> None:
    found = variables({"region": "eu", "unset": None, "a": "${b}", "b": "x${a}"}, folder=tmp_path)
    assert refused(found, text) == why


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * (MOST_CHARACTERS + 1))
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    found = variables(folder=tmp_path)
    assert refused(found, "${file:large}") == f"the file large is larger than {MOST_CHARACTERS} bytes"
    assert refused(found, "${file:bytes}") == "the file bytes is not UTF-8"


def test_variables_that_explode_are_bounded() -> None:
    doubling = {f"v{n}": f"${{v{n - 1}}}${{v{n - 1}}}" for n in range(1, 40)}
    found = variables({"v0": "lol", **doubling})
    assert refused(found, "${v39}") == f"with its variables this has more than {MOST_CHARACTERS} characters"


def test_a_text_that_is_long_behind_its_last_variable_is_bounded_too() -> None:
    found = variables({"a": "b"})
    assert refused(found, "${a}" + "x" * MOST_CHARACTERS).endswith("characters")


def test_all_texts_together_are_bounded() -> None:
    found = variables({"a": "x" * 60_000})
    with pytest.raises(VariableError, match="in all"):
        for _ in range(100):
            found.fill("${a}")


def test_a_long_chain_is_refused_without_recursion() -> None:
    chain = {f"v{n}": f"${{v{n + 1}}}" for n in range(5000)}
    assert refused(variables({**chain, "v5000": "x"}), "${v0}") == "variables are nested more than 50 deep"


def test_where_secrets_are_not_needed_those_that_are_missing_are_noted() -> None:
    found = variables(needs_secrets=False)
    assert found.fill("${env:LC_NOT_THERE}") == "secret"
    assert found.missing == ["the environment has no LC_NOT_THERE"]


def test_the_nearest_name() -> None:
    assert nearest("amont", ["amount", "id"]) == ": did you mean amount?"
    assert nearest("zzz", ["amount", "id"]) == ""

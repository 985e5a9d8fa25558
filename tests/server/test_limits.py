"""The limit of open files is raised as far as the process may."""

import resource

import pytest

from leafcuttr.server.limits import raise_descriptor_limit


def test_the_soft_limit_becomes_the_hard_one() -> None:
    before = soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
        assert raise_descriptor_limit() == hard
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
        assert raise_descriptor_limit() == hard
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_system_that_does_not_allow_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert raise_descriptor_limit() == 1024

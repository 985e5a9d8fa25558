"""GSSAPI without Kerberos: a token is the principal itself, and what is wrapped is what it was. For the mechanism
around it; tickets of a real KDC are in tests/clients/test_kerberos.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import trio

from leafcuttr.state.security.kerberos.acceptor import KerberosError, Shown

WRAPPED = b"wrapped:"


class PretendedContext:
    """`steps` are what its tokens are answered, the last one once the client is known."""

    def __init__(self, steps: Sequence[bytes] = (b"",), lasts_s: int | None = None) -> None:
        self._steps = list(steps)
        self._lasts_s = lasts_s

    def accept(self, token: bytes) -> Shown:
        _in_a_worker()
        if token == b"bad":
            raise KerberosError("a bad ticket")
        answer = self._steps.pop(0)
        return Shown(answer) if self._steps else Shown(answer, token.decode(), self._lasts_s)

    def wrap(self, data: bytes) -> bytes:
        _in_a_worker()
        return WRAPPED + data

    def unwrap(self, data: bytes) -> bytes:
        _in_a_worker()
        if not data.startswith(WRAPPED):
            raise KerberosError("a token of another context")
        return data.removeprefix(WRAPPED)


class PretendedAcceptor:
    """All its contexts are alike; `begun` says how many there were."""

    def __init__(
        self, steps: Sequence[bytes] = (b"",), lasts_s: int | None = None, default_realm: str = "R"
    ) -> None:
        self.default_realm = default_realm
        self.begun = 0
        self._steps, self._lasts_s = steps, lasts_s

    def begin(self) -> PretendedContext:
        _in_a_worker()
        self.begun += 1
        return PretendedContext(self._steps, self._lasts_s)


def _in_a_worker() -> None:
    """The library blocks: never on the loop."""
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        return
    raise AssertionError("the library is called on the loop")

"""The audit log: what clients were denied, or all that they were allowed, as lines of JSON.

The same again within a minute is counted, and written with the next line of it, or by `sweep`.
"""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from leafcuttr.state.identity import ClientIdentity
from leafcuttr.state.security import AUDIT_LOGGER
from leafcuttr.state.security.acl import AclOperation, AclResourceType
from leafcuttr.wire.api import APIS
from leafcuttr_sdk import Clock

PERIOD_S: Final = 60.0
# Of names that clients make up there are very many: the oldest counts are then written before their minute is over.
_MOST: Final = 10_000
_LONGEST_NAME: Final = 300

RuleOf = Callable[[ClientIdentity, AclOperation, AclResourceType, str], str]
_Key = tuple[str, str, int | str, AclOperation, AclResourceType, str, bool]


@dataclass(slots=True)
class _Counted:
    since: float
    count: int
    rule: str


class AuditLog:
    """See the module. `every`: what is allowed is in it too."""

    def __init__(self, rule_of: RuleOf, clock: Clock, *, every: bool) -> None:
        """`rule_of` says which rule has decided."""
        self.every = every
        self._rule_of = rule_of
        self._clock = clock
        self._counted: dict[_Key, _Counted] = {}
        self._logger = logging.getLogger(AUDIT_LOGGER)
        # It is there because a setting says so, however quiet the rest is.
        self._logger.setLevel(logging.INFO)

    def note(
        self,
        client: ClientIdentity,
        api_key: int | str,
        operation: AclOperation,
        resource_type: AclResourceType,
        name: str,
        *,
        allowed: bool,
    ) -> None:
        """`api_key` is that of the request, or the name of the plugin whose client it is."""
        principal = str(client.principal)
        key = (principal, client.host, api_key, operation, resource_type, name[:_LONGEST_NAME], allowed)
        counted = self._counted.get(key)
        now = self._clock.monotonic()
        if counted is not None:
            counted.count += 1
            if now - counted.since >= PERIOD_S:
                self._write(key, counted)
                counted.since, counted.count = now, 0
            return
        rule = self._rule_of(client, operation, resource_type, name)
        counted = _Counted(now, 1, rule)
        self._write(key, counted)
        counted.count = 0
        self._counted[key] = counted
        if len(self._counted) > _MOST:
            oldest = next(iter(self._counted))
            self._flush(oldest, self._counted.pop(oldest))

    def sweep(self, *, everything: bool = False) -> None:
        """Write what has been counted for a minute, or, at the end, all of it."""
        now = self._clock.monotonic()
        over = [
            (key, each) for key, each in self._counted.items() if everything or now - each.since >= PERIOD_S
        ]
        for key, each in over:
            del self._counted[key]
            self._flush(key, each)

    def _flush(self, key: _Key, counted: _Counted) -> None:
        if counted.count:
            self._write(key, counted)

    def _write(self, key: _Key, counted: _Counted) -> None:
        principal, address, api_key, operation, resource_type, name, allowed = key
        api = APIS.get(api_key) if isinstance(api_key, int) else None
        line = {
            "time_ms": self._clock.now_ms(),
            "principal": principal,
            "address": address,
            "allowed": allowed,
            "operation": operation.name,
            "resource": f"{resource_type.name}:{name}",
            "request": str(api_key) if api is None else api.name,
            "rule": counted.rule,
            "count": counted.count,
        }
        self._logger.info("%s", json.dumps(line))

"""One TLS context for all clients of httpx that say nothing of TLS.

httpx reads the certificates of 140 authorities for each client that it makes, also for one that speaks plain HTTP. That
took a seventh of the processor of tests that use HTTP. A client that is given a context, or a file, takes that one.
"""

from __future__ import annotations

import functools
import sys
from typing import Any


def pytest_collection_finish() -> None:
    # Whose tests were collected has imported it; others do not pay for that.
    transports: Any = sys.modules.get("httpx._transports.default")
    if transports is not None:
        transports.create_ssl_context = _shared(transports.create_ssl_context)


def _shared(make: Any) -> Any:
    once = functools.cache(make)

    @functools.wraps(make)
    def create_ssl_context(verify: Any = True, cert: Any = None, trust_env: bool = True) -> Any:
        if verify is True and cert is None:
            return once(trust_env=trust_env)
        return make(verify=verify, cert=cert, trust_env=trust_env)

    return create_ssl_context

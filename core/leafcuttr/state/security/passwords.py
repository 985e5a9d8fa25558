"""Passwords of the stored users, checked in a worker."""

from functools import partial

import trio

from leafcuttr.state.security.credentials import ScramCredential, ScramMechanism
from leafcuttr.state.security.users import Users, of_plain


async def fitting_credential(
    users: Users, name: str, password: bytes, limiter: trio.CapacityLimiter
) -> ScramCredential | None:
    """The credential of the user that this password fits; None: it is wrong, or there is no such user."""
    from leafcuttr.state.security.scram import fits, invented, usual_shape

    # The same work whether or not there is such a user: how long it takes shall not tell that.
    await users.have_secret(limiter)
    shape = users.shape_of_nobody(name, None, usual_shape(ScramMechanism.SCRAM_SHA_256))
    nobody = shape.mechanism, invented(shape, name, users.secret)
    stored = users.credentials(name)
    mechanism, credential = of_plain(stored) if stored else nobody
    fitting = partial(fits, mechanism, credential, password)
    return credential if await trio.to_thread.run_sync(fitting, limiter=limiter) else None

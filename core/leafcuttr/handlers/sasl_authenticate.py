"""SaslAuthenticate, versions 0 to 2: a message of the mechanism that SaslHandshake has named (KIP-152).

Version 1 says how long the session lasts (KIP-368), 2 is flexible. On a listener without SASL, and for a client that is
in and has named no mechanism again, it is an ILLEGAL_SASL_STATE.
"""

import trio

from leafcuttr.errors import ErrorCode
from leafcuttr.handlers.context import RequestContext
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


async def handle(
    broker: Broker, context: RequestContext, request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse:
    if context.login is None:
        return SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE,
            error_message="SaslAuthenticate request received after successful authentication",
        )
    login, most = context.login, broker.settings.int("sasl.server.max.receive.size")
    was_in = login.user is not None
    if len(request.auth_bytes) > most:
        outcome = login.refuse(f"the message has more than {most} bytes (sasl.server.max.receive.size)")
    else:
        outcome = await login.authenticate(bytes(request.auth_bytes))
    if outcome.code and was_in:
        # Before it is in, `server.login.before` holds the connection.
        await trio.sleep(broker.settings.int("connection.failed.authentication.delay.ms") / 1000)
    return SaslAuthenticateResponse(
        error_code=outcome.code,
        error_message=outcome.message,
        auth_bytes=outcome.data,
        session_lifetime_ms=outcome.lifetime_ms,
    )

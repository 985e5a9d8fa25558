"""Whether a client is let in: CONNECT, and the packets AUTH of enhanced authentication (3.1.4, 4.12)."""

import uuid
from typing import TYPE_CHECKING, Final

from leafcuttr_mqtt.bridge.local import LocalStream
from leafcuttr_mqtt.packets.types import Auth, Connect, ReasonCode
from leafcuttr_mqtt.server.authentication import NotAuthenticated
from leafcuttr_mqtt.session.events import Authenticating, Connected, Event, ReAuthenticated
from leafcuttr_mqtt.session.states import Phase
from leafcuttr_mqtt.topics.names import why_too_deep
from leafcuttr_sdk.authentication import Authenticated, Challenge, Principal, act_for

if TYPE_CHECKING:
    from leafcuttr_mqtt.routing.clients import Client
    from leafcuttr_mqtt.routing.rights import Who
    from leafcuttr_mqtt.server.contract import Served
    from leafcuttr_sdk.authentication import AuthenticationExchange, Step
    from leafcuttr_sdk.serving import ByteStream

DECIDED: Final = (Connected, Authenticating, ReAuthenticated)
"""Events that wait for a decision."""


class Admission:
    """The decisions on one connection."""

    __slots__ = ("_connection", "_exchange", "_stream", "principal")

    def __init__(self, connection: "Served", stream: "ByteStream") -> None:
        self._connection = connection
        self._stream = stream
        self._exchange: AuthenticationExchange | None = None
        self.principal: Principal | None = None

    async def decide(self, event: Event) -> None:
        """Answer an event of `DECIDED`. Afterwards the client is in, is to send AUTH, or the connection is ended."""
        connection = self._connection
        try:
            if isinstance(event, Connected):
                connection.version = event.connect.version
                await self._connect(event.connect)
            elif isinstance(event, Authenticating):
                await self._step(event.auth, again=False)
            elif isinstance(event, ReAuthenticated):
                if event.begins:
                    self._begin(event.auth.properties.authentication_method or "")
                await self._step(event.auth, again=True)
        except NotAuthenticated as refused:
            connection.running.counts.refused += 1
            connection.end(refused.reason, at_fault=True, log=refused.text)

    async def _connect(self, connect: Connect) -> None:
        running = self._connection.running
        if running.stopping:
            self._connection.end(ReasonCode.SERVER_SHUTTING_DOWN)
            return
        method = connect.properties.authentication_method
        if method is not None:
            self._begin(method)
            await self._step(Auth(properties=connect.properties), again=False)
            return
        self._accept(await running.doorkeeper.admit(connect, self._stream), None)

    def _begin(self, method: str) -> None:
        self._exchange = self._connection.running.doorkeeper.begin(method)

    async def _step(self, auth: Auth, *, again: bool) -> None:
        assert self._exchange is not None
        step: Step = await self._exchange.step(auth.properties.authentication_data or b"")
        conversation = self._connection.conversation
        if conversation.phase is Phase.ENDED:
            return
        if isinstance(step, Challenge):
            self._connection.put_packet(conversation.challenge(step.data))
            self._connection.send_soon()
        elif isinstance(step, Authenticated):
            if again:
                self._authenticated(step)
                if self._connection.client is not None:
                    self._identify(self._connection.client)
                self._connection.put_packet(conversation.re_authenticated(step.data or None))
                self._connection.send_soon()
            else:
                self._accept(step, step.data or None)
        else:
            raise NotAuthenticated(ReasonCode.NOT_AUTHORIZED, step.reason)

    def _authenticated(self, authenticated: Authenticated) -> None:
        self.principal = authenticated.principal
        act_for(authenticated.principal)
        expires_ms = authenticated.expires_ms
        if expires_ms is not None:
            self._connection.expires_at(expires_ms)
        if authenticated.still_holds is not None:
            self._connection.holds_while(authenticated.still_holds)

    @property
    def _who(self) -> "Who | None":
        """None: there are no rights, or it is a bridge of this broker, which does what its settings say."""
        if self._connection.running.hub.rights is None or isinstance(self._stream, LocalStream):
            return None
        from leafcuttr_mqtt.routing.rights import Who

        assert self.principal is not None
        return Who(self.principal, self._stream.peer.host)

    def _identify(self, client: "Client") -> None:
        who, connection = self._who, self._connection
        if who is not None:
            connection.running.hub.identify(client, who)
        connection.take_quota(self.principal)

    def _check_will(self, topic: str) -> None:
        """Raises NotAuthenticated."""
        rights, who = self._connection.running.hub.rights, self._who
        why = None if rights is None or who is None else rights.why_not_published(who, topic)
        if why is not None:
            raise NotAuthenticated(ReasonCode.NOT_AUTHORIZED, f"its will: {why}")

    def _refuse_own(self, client_id: str) -> None:
        """A client with the identifier of a bridge would get its session, and what waits there. Raises
        NotAuthenticated."""
        reserved = self._connection.running.reserved
        if client_id in reserved and not isinstance(self._stream, LocalStream):
            reserved[client_id] += 1
            raise NotAuthenticated(
                ReasonCode.CLIENT_IDENTIFIER_NOT_VALID,
                f"its client identifier {client_id[:255]!r} is that of a bridge of this broker",
            )

    def _accept(self, authenticated: Authenticated, data: bytes | None) -> None:
        connection = self._connection
        conversation, hub = connection.conversation, connection.running.hub
        if conversation.phase is Phase.ENDED:
            return  # its time was over in the step of the loop in which the authenticator came to its answer
        connect = conversation.connect
        assert connect is not None
        if connect.will is not None and (wrong := why_too_deep(connect.will.topic)):
            raise NotAuthenticated(ReasonCode.TOPIC_NAME_INVALID, f"the topic of its will: {wrong}")
        self._refuse_own(connect.client_id)
        self._authenticated(authenticated)
        if connect.will is not None:
            self._check_will(connect.will.topic)
        client_id = connect.client_id or f"auto-{uuid.uuid4().hex}"
        if not conversation.fits(client_id, data):
            connection.end(
                ReasonCode.PACKET_TOO_LARGE,
                log="its maximum packet size is too small for CONNACK",
                at_fault=True,
            )
            return
        before = hub.clients.get(client_id)
        had_notes = before is not None and before.noted
        client, present = hub.connect(connection, connect, client_id, connect.user_name)
        connection.client = client
        self._identify(client)
        for packet in conversation.accept(client.session, present=present, authentication_data=data):
            connection.put_packet(packet)
        connection.accepted(conversation.keep_alive_s)
        hub.note(client)
        if client.noted or had_notes:
            connection.wait_for_store()
        connection.touched()
        connection.send_soon()

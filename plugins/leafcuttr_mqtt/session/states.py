"""The states of a connection and of exchanges with QoS 1 and 2, as tables.

Theory of operation
-------------------
Three things have a state, and live for different times:

- A connection, as long as the connection. It is in one state at a time. Each packet of the client is looked up with the
  state in `CONNECTION`: what is there may come and leads to the state named; what is not is refused as a protocol
  error (4.13.1), with two exceptions: the first packet has to be CONNECT, else the connection is closed without an
  answer ([MQTT-3.1.0-1]), and nothing is read after DISCONNECT or an error. Some changes are the server's own
  decision, made by methods of the conversation: those are in `DECISIONS`.

      EXPECTS_CONNECT --CONNECT--> CONNECTING --accept--> CONNECTED --DISCONNECT--> ENDED
                                    |      ^                |    ^
                              challenge   AUTH            AUTH  re_authenticated
                                    v      |                v    |
                                 AUTHENTICATING       RE_AUTHENTICATING

  While a client is connecting (its CONNECT is checked, which takes a while), it may send on before CONNACK (3.1.4):
  such packets are held, unread, and are lost with the connection if that is refused ([MQTT-3.1.4-6]). A client that
  authenticates by AUTH may not ([MQTT-3.1.2-30]). During re-authentication all other packets go on (4.12.1).

- An exchange from the server to the client, as long as the session: a message with QoS 1 or 2 and its packet
  identifier. Its state is what the client has to send next. `TO_CLIENT` has what may come, and the next state.

      QoS 1   WAITING --send--> AWAITS_PUBACK --PUBACK--> done
      QoS 2   WAITING --send--> AWAITS_PUBREC --PUBREC--> AWAITS_PUBCOMP --PUBCOMP--> done
                                     `--PUBREC with an error--> done

  On a new connection what awaits PUBACK or PUBREC is sent again as PUBLISH with DUP, what awaits PUBCOMP as PUBREL
  ([MQTT-4.4.0-1]). What comes for a packet identifier that is unknown is none of these: PUBREC is answered with PUBREL
  and the reason 0x92, the others are ignored (4.3.3, 3.6.2.1): the session may have ended in between.

- An exchange from the client to the server with QoS 2, as long as the session; one with QoS 1 has no state between
  packets. `FROM_CLIENT` has it.

      NEW --PUBLISH--> PENDING --stored--> RECEIVED --PUBREL--> RELEASED --noted--> done
                          |--refused--> done
                          `--abandoned--> done

  PENDING is while the message is being stored: PUBREC is not sent yet. It is the one state that a restart forgets:
  then the client has no PUBREC and sends the message again, and its number tells what of it was stored. So it is
  where a message cannot be stored for now and the connection ends: the exchange is abandoned. A PUBLISH in PENDING,
  RECEIVED or RELEASED is a repetition and is not published again ([MQTT-4.3.3-10]). In RELEASED, PUBREL has come and is
  being noted: PUBCOMP is sent after that, because the client may use the packet identifier for another message then;
  without the note, a restart would take that for a repetition.

The tables are what the code is tested against: the classes of `inbound` and `outbound` keep exchanges of one state in a
dictionary of their own, which is quicker than an object for each with a state in it.
"""

from enum import Enum, auto
from typing import Final

from leafcuttr_mqtt.packets.types import PacketType


class Phase(Enum):
    """Of a connection."""

    EXPECTS_CONNECT = auto()
    CONNECTING = auto()
    """CONNECT, or AUTH after it, is being decided."""
    AUTHENTICATING = auto()
    """The server has sent AUTH in answer to CONNECT."""
    CONNECTED = auto()
    RE_AUTHENTICATING = auto()
    ENDED = auto()
    """DISCONNECT has come or was sent, or there was an error. Nothing is read or sent any more."""


class Next(Enum):
    """Where a packet of the client leads that does not lead to a state."""

    STAY = auto()
    HOLD = auto()
    """It is read once the connection is accepted."""


_RUNNING: Final[dict[PacketType, Phase | Next]] = {
    PacketType.PUBLISH: Next.STAY,
    PacketType.PUBACK: Next.STAY,
    PacketType.PUBREC: Next.STAY,
    PacketType.PUBREL: Next.STAY,
    PacketType.PUBCOMP: Next.STAY,
    PacketType.SUBSCRIBE: Next.STAY,
    PacketType.UNSUBSCRIBE: Next.STAY,
    PacketType.PINGREQ: Next.STAY,
    PacketType.DISCONNECT: Phase.ENDED,
    PacketType.AUTH: Phase.RE_AUTHENTICATING,
}

CONNECTION: Final[dict[Phase, dict[PacketType, Phase | Next]]] = {
    Phase.EXPECTS_CONNECT: {PacketType.CONNECT: Phase.CONNECTING},
    # A second CONNECT is held too, and refused when its turn comes ([MQTT-3.1.0-2]).
    Phase.CONNECTING: dict.fromkeys((PacketType.CONNECT, *_RUNNING), Next.HOLD),
    Phase.AUTHENTICATING: {PacketType.AUTH: Phase.CONNECTING, PacketType.DISCONNECT: Phase.ENDED},
    Phase.CONNECTED: _RUNNING,
    Phase.RE_AUTHENTICATING: _RUNNING,
    Phase.ENDED: {},
}
"""What a client may send, and where it leads. Packets that only a server sends are nowhere."""


class Decision(Enum):
    """What the server does by itself: methods of `Conversation`."""

    ACCEPT = auto()
    """CONNACK with success."""
    REFUSE = auto()
    """CONNACK with a reason."""
    CHALLENGE = auto()
    """AUTH with 0x18."""
    RE_AUTHENTICATED = auto()
    """AUTH with 0x00."""
    END = auto()
    """DISCONNECT, where the version and the state allow it ([MQTT-3.14.0-1]); the connection is closed."""


DECISIONS: Final[dict[Phase, dict[Decision, Phase]]] = {
    Phase.EXPECTS_CONNECT: {Decision.END: Phase.ENDED},
    Phase.CONNECTING: {
        Decision.ACCEPT: Phase.CONNECTED,
        Decision.REFUSE: Phase.ENDED,
        Decision.CHALLENGE: Phase.AUTHENTICATING,
        Decision.END: Phase.ENDED,
    },
    Phase.AUTHENTICATING: {Decision.REFUSE: Phase.ENDED, Decision.END: Phase.ENDED},
    Phase.CONNECTED: {Decision.END: Phase.ENDED},
    Phase.RE_AUTHENTICATING: {
        Decision.CHALLENGE: Phase.RE_AUTHENTICATING,
        Decision.RE_AUTHENTICATED: Phase.CONNECTED,
        Decision.END: Phase.ENDED,
    },
    Phase.ENDED: {Decision.END: Phase.ENDED},
}


class ToClient(Enum):
    """Of a delivery with QoS 1 or 2."""

    WAITING = auto()
    """No packet identifier is in use for it."""
    AWAITS_PUBACK = auto()
    AWAITS_PUBREC = auto()
    AWAITS_PUBCOMP = auto()
    DONE = auto()


class FromClient(Enum):
    """Of a packet identifier of the client, for QoS 2."""

    NEW = auto()
    """It is not in use."""
    PENDING = auto()
    RECEIVED = auto()
    RELEASED = auto()


class Came(Enum):
    """What moves an exchange."""

    SEND = auto()
    PUBACK = auto()
    PUBREC = auto()
    PUBREC_ERROR = auto()
    """With a reason of 0x80 or more."""
    PUBCOMP = auto()
    PUBLISH = auto()
    STORED = auto()
    REFUSED = auto()
    """It cannot be stored: PUBREC with an error goes out."""
    ABANDONED = auto()
    """It cannot be stored for now, and the connection ends."""
    PUBREL = auto()
    COMPLETED = auto()
    """The release is noted: PUBCOMP goes out."""


TO_CLIENT: Final[dict[tuple[ToClient, int], dict[Came, ToClient]]] = {
    (ToClient.WAITING, 1): {Came.SEND: ToClient.AWAITS_PUBACK},
    (ToClient.WAITING, 2): {Came.SEND: ToClient.AWAITS_PUBREC},
    (ToClient.AWAITS_PUBACK, 1): {Came.SEND: ToClient.AWAITS_PUBACK, Came.PUBACK: ToClient.DONE},
    (ToClient.AWAITS_PUBREC, 2): {
        Came.SEND: ToClient.AWAITS_PUBREC,
        Came.PUBREC: ToClient.AWAITS_PUBCOMP,
        Came.PUBREC_ERROR: ToClient.DONE,
    },
    (ToClient.AWAITS_PUBCOMP, 2): {
        # Again, in answer to a PUBLISH with DUP that crossed it.
        Came.PUBREC: ToClient.AWAITS_PUBCOMP,
        Came.PUBREC_ERROR: ToClient.DONE,
        Came.PUBCOMP: ToClient.DONE,
    },
}
"""By state and QoS; what is not there is refused as a protocol error. SEND of what awaits PUBACK or PUBREC is one with
DUP, on a new connection."""

FROM_CLIENT: Final[dict[FromClient, dict[Came, FromClient]]] = {
    FromClient.NEW: {Came.PUBLISH: FromClient.PENDING},
    FromClient.PENDING: {
        Came.PUBLISH: FromClient.PENDING,
        Came.STORED: FromClient.RECEIVED,
        Came.REFUSED: FromClient.NEW,
        Came.ABANDONED: FromClient.NEW,
    },
    FromClient.RECEIVED: {Came.PUBLISH: FromClient.RECEIVED, Came.PUBREL: FromClient.RELEASED},
    FromClient.RELEASED: {
        Came.PUBLISH: FromClient.RELEASED,
        Came.PUBREL: FromClient.RELEASED,
        Came.COMPLETED: FromClient.NEW,
    },
}
"""PUBREL for a packet identifier in NEW or PENDING is answered with PUBCOMP and the reason 0x92, not found."""

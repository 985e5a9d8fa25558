"""What several handlers put in their answers: error fields, the standing words for an error, authorized
operations."""

from collections.abc import Hashable
from typing import Final

from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr.handlers.access import operations
from leafcuttr.handlers.context import RequestContext
from leafcuttr.state.broker import Broker
from leafcuttr.state.security.acl import AclOperation, AclResourceType
from leafcuttr.state.topics import Topic

# In the place of a bit set of authorized operations (KIP-430).
NOT_REQUESTED: Final = -(2**31)
_WRITE: Final = 1 << AclOperation.WRITE

# Kafka's clients show these words; answers that carry a message carry them even where nothing more is known.
WORDS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.UNKNOWN_TOPIC_ID: "This server does not host this topic ID.",
    ErrorCode.KAFKA_STORAGE_ERROR: "Disk error when trying to access log file on the disk.",
}

# How many answers of a request may be those to a question that it has repeated, where an answer may be thousands of
# times the size of its question. Kafka has no limit, and makes them all.
REPEATED: Final = 16


class FewRepeated:
    """Which questions of one request are answered."""

    def __init__(self) -> None:
        self._requested: set[Hashable] = set()
        self._left = REPEATED

    def answers(self, question: Hashable) -> bool:
        """Whether this one is new, or among the first few that are not."""
        if question not in self._requested:
            self._requested.add(question)
            return True
        self._left -= 1
        return self._left >= 0


def operations_on(broker: Broker, context: RequestContext, topic: Topic) -> int:
    """What the client may do with the topic. Nobody may write to one that belongs to a plugin."""
    found = operations(broker, context, AclResourceType.TOPIC, topic.name)
    return found if topic.owner is None else found & ~_WRITE


def words(error: BrokerError) -> str | None:
    """The message of an error, or the standing words for its code."""
    return error.message or WORDS.get(error.code)


def rack(broker: Broker) -> str | None:
    return broker.settings.optional_text("broker.rack")


def address(context: RequestContext) -> tuple[str, int]:
    """The host and port that this client should know us by: those of the listener it came in through."""
    return context.listener.advertised_host, context.listener.advertised_port

"""Topics that belong to a plugin: it alone puts records into them and takes them out.

The owner is stored with the topic (`state.metadata`). Reading, and what Kafka's rights ALTER, ALTER_CONFIGS and DELETE
are about (partitions, settings, the topic itself), are not the owner's alone: an operator has to be able to remove a
topic whose plugin is gone. The markers of transactions are the coordinator's, also in a topic that has an owner.
"""

from leafcuttr.errors import TopicAuthorizationFailed
from leafcuttr.state.topics import Topic


def check_owner(topic: Topic, plugin: str | None = None) -> None:
    """Raise TopicAuthorizationFailed if the topic has an owner, and that is not `plugin`; None is a Kafka client."""
    if topic.owner is not None and topic.owner != plugin:
        raise TopicAuthorizationFailed(
            f"Topic '{topic.name}' belongs to the plugin {topic.owner}: nobody else writes to it."
        )

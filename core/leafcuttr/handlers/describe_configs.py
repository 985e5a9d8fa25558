"""DescribeConfigs, versions 1 to 4.

Version 1 brought sources and synonyms (KIP-226), 3 types and documentation (KIP-569), 4 is flexible. Topics,
brokers (an empty name: what was changed for all brokers), loggers of this broker, groups and client metrics; a
group shows the broker's values, client metrics Kafka's defaults, because neither can be changed yet. The
documentation is ours. A null or empty list of keys requests all; an unknown key is left out. Secrets have no
value. One resource of an unknown kind fails the whole request, as in Kafka. Unlike there, what is requested
twice is answered once.
"""

from collections.abc import Mapping
from typing import Final

import trio

from leafcuttr.config.describe import (
    Described,
    describe_broker,
    describe_cluster_default,
    describe_group,
    describe_kept,
    describe_topic,
)
from leafcuttr.config.setting import ConfigType
from leafcuttr.config.settings import Source
from leafcuttr.errors import BrokerError, ErrorCode, InvalidRequest, UnknownTopicOrPartition
from leafcuttr.handlers.access import (
    DESCRIBE_CLUSTER_CONFIGS,
    DESCRIBE_GROUP_CONFIGS,
    DESCRIBE_TOPIC_CONFIGS,
    Right,
    denied,
    may,
)
from leafcuttr.handlers.answers import FewRepeated
from leafcuttr.handlers.broker_loggers import describe_loggers
from leafcuttr.handlers.config_resources import ConfigResourceType, is_known
from leafcuttr.handlers.context import RequestContext
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state import topic_names
from leafcuttr.state.broker import Broker
from leafcuttr.state.dynamic_settings import ALL_BROKERS
from leafcuttr.state.security.acl import CLUSTER_NAME
from leafcuttr.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

MALFORMED: Final = (
    "This most likely occurs because of a request being malformed by the client library or the message was sent "
    "to an incompatible broker. See the broker logs for more details."
)
_NEEDED: Final[Mapping[int, Right]] = {
    ConfigResourceType.TOPIC: DESCRIBE_TOPIC_CONFIGS,
    ConfigResourceType.GROUP: DESCRIBE_GROUP_CONFIGS,
}
_CLIENT_METRICS: Final = (
    Described(
        "interval.ms",
        "300000",
        Source.DEFAULT_CONFIG,
        type=ConfigType.INT,
        help="How often a client sends its metrics.",
    ),
    Described(
        "match",
        "",
        Source.DEFAULT_CONFIG,
        type=ConfigType.LIST,
        help="Which clients send them: patterns for their id, software, address and port.",
    ),
    Described(
        "metrics",
        "",
        Source.DEFAULT_CONFIG,
        type=ConfigType.LIST,
        help="Which metrics they send: the first parts of names.",
    ),
)


async def handle(
    broker: Broker, context: RequestContext, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    malformed = not all(is_known(resource.resource_type) for resource in request.resources)
    # An answer takes a millisecond to make and is a hundred times the size of its question: the same question has
    # the same answer, and others have their turn in between.
    made: dict[tuple[int, str, frozenset[str] | None], DescribeConfigsResult] = {}
    results: list[DescribeConfigsResult] = []
    unseen: list[DescribeConfigsResult] = []
    few = FewRepeated()
    pace = Pace()
    for resource in request.resources:
        await pace.turn()
        if malformed:
            results.append(_failed(resource, InvalidRequest(MALFORMED)))
            continue
        if (right := _lacks(broker, context, resource)) is not None:
            unseen.append(_failed(resource, denied(right, right.words)))
            continue
        names = resource.configuration_keys
        question = resource.resource_type, resource.resource_name, None if names is None else frozenset(names)
        if not few.answers(question):
            continue
        if question not in made:
            await trio.lowlevel.checkpoint()
            made[question] = _answer(broker, request, resource)
        results.append(made[question])
    return DescribeConfigsResponse(results=results + unseen)


def _lacks(broker: Broker, context: RequestContext, resource: DescribeConfigsResource) -> Right | None:
    """The right that the client would need."""
    right = _NEEDED.get(resource.resource_type, DESCRIBE_CLUSTER_CONFIGS)
    of_cluster = right is DESCRIBE_CLUSTER_CONFIGS
    name = CLUSTER_NAME if of_cluster else resource.resource_name
    return None if may(broker, context, right, name) else right


def _answer(
    broker: Broker, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    try:
        settings = _settings_of(broker, resource)
    except BrokerError as error:
        return _failed(resource, error)
    keys = frozenset(resource.configuration_keys or ())
    return DescribeConfigsResult(
        error_code=ErrorCode.NONE,
        error_message="",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[_config(request, setting) for setting in settings if not keys or setting.name in keys],
    )


def _settings_of(broker: Broker, resource: DescribeConfigsResource) -> list[Described]:
    name = resource.resource_name
    match resource.resource_type:
        case ConfigResourceType.TOPIC:
            topic_names.check(name)
            topic = broker.topics.find(name)
            if topic is None:
                raise UnknownTopicOrPartition
            return describe_topic(broker.settings, name, topic.overrides, topic.config)
        case ConfigResourceType.BROKER if not name:
            return describe_cluster_default(broker.settings) + _kept(broker, own=False)
        case ConfigResourceType.BROKER:
            _check_broker(broker, name, f"{broker.node_id} or empty string,")
            return describe_broker(broker.settings) + _kept(broker, own=True)
        case ConfigResourceType.BROKER_LOGGER:
            if not name:
                raise InvalidRequest("Broker id must not be empty")
            _check_broker(broker, name, f"{broker.node_id}")
            return describe_loggers()
        case ConfigResourceType.GROUP:
            if not name:
                raise InvalidRequest("Group name must not be empty")
            return describe_group(broker.settings)
        case _:
            if not name:
                raise InvalidRequest("Client metrics subscription name must not be empty")
            return list(_CLIENT_METRICS)


def _kept(broker: Broker, *, own: bool) -> list[Described]:
    dynamic = broker.dynamic_settings
    return describe_kept(
        broker.settings, dynamic.texts(dynamic.own_scope) if own else {}, dynamic.texts(ALL_BROKERS)
    )


def _check_broker(broker: Broker, name: str, expected: str) -> None:
    try:
        node = int(name)
    except ValueError:
        raise InvalidRequest(f"Broker id must be an integer, but it is: {name}") from None
    if node != broker.node_id:
        raise InvalidRequest(f"Unexpected broker id, expected {expected} but received {name}")


def _config(request: DescribeConfigsRequest, setting: Described) -> DescribeConfigsResourceResult:
    synonyms = setting.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=setting.name,
        value=setting.value,
        read_only=setting.read_only,
        config_source=setting.source,
        is_sensitive=setting.sensitive,
        synonyms=[DescribeConfigsSynonym(name=s.name, value=s.value, source=s.source) for s in synonyms],
        config_type=setting.type,
        documentation=setting.help if request.include_documentation else None,
    )


def _failed(resource: DescribeConfigsResource, error: BrokerError) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error.code,
        error_message=error.message or "",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )

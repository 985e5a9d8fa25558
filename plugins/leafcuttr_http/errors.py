"""Errors of the proxy: every code it answers with, their place in HTTP, and those of the broker among them.

A body is `{"error_code": 42206, "message": "record 3: ..."}`, as REST proxy API v2 has it. Codes of three digits are
those of HTTP; those of five say more, and begin with the three.
"""

from collections.abc import Mapping
from typing import Final

from leafcuttr_sdk.errors import BrokerError, ErrorCode
from leafcuttr_sdk.web.errors import ApiError as ApiError
from leafcuttr_sdk.web.errors import code_of as code_of
from leafcuttr_sdk.web.errors import describe as describe
from leafcuttr_sdk.web.errors import of_broker as of_broker

CODES: Final[Mapping[int, str]] = {
    400: "The body is not what its type says: no JSON, no UTF-8, no gzip; or the request line makes no sense.",
    401: "The request needs credentials, or its credentials are not valid (`lc.http.proxy.auth`).",
    403: "A page of this origin may not send that or open a WebSocket here (`lc.http.proxy.cors.allowed.origins`), or "
    "a certificate is needed.",
    404: "There is no such path.",
    405: "The path is there, the method is not; `Allow` names those that are.",
    406: "None of the types in `Accept` can be answered.",
    408: "The body took longer than `lc.http.proxy.request.timeout.ms`.",
    413: "The body, or a record in it, is larger than allowed.",
    415: "The body is compressed in a way that the proxy does not read.",
    422: "The body is JSON, but a member is missing, unknown or of the wrong type.",
    429: "The client is above a quota for longer than `lc.http.proxy.request.timeout.ms`; `Retry-After` says how "
    "long.",
    503: "Too many connections or streams, too few descriptors or threads, the schema registry is not ready, or the "
    "broker is stopping.",
    40301: "The client lacks a right, which the message names; or the topic belongs to a plugin, and nobody else "
    "writes to it.",
    40401: "There is no such topic.",
    40402: "The topic has no such partition.",
    40403: "There is no such consumer.",
    40404: "The partition cannot be read or written at present.",
    40405: "There is no such consumer group.",
    40601: "The consumer was made for another format than the request accepts, or the format needs a schema registry.",
    40801: "A schema cannot be registered (not compatible, read-only), or there is none of this id.",
    40901: "The consumer is subscribed already.",
    40902: "A consumer of this name is there already.",
    40903: "The consumer is in a state in which this cannot be done.",
    41501: "Records of this type cannot be produced: unknown, or a format that needs a schema registry.",
    42201: "Keys of this format need a schema.",
    42202: "Values of this format need a schema.",
    42203: "A key or value cannot be converted: it is not of its schema, or names none that can be read.",
    42204: "A setting of the consumer is not valid.",
    42205: "The schema is not valid, or is of another type.",
    42206: "A record is not valid: the message names its index and the member.",
    42207: "A key or value cannot be stored as JSON: an infinite number or half of a surrogate pair.",
    42208: "The Idempotency-Key is not valid, or was used with another body.",
    50001: "The proxy failed; the broker's log says how.",
    50002: "The broker refused, and would again.",
    50003: "The broker refused or was too slow; the same request may succeed later.",
}


def of_topic(error: BrokerError, topic: str) -> ApiError:
    """What is wrong with a topic as such."""
    match error.code:
        case ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return no_topic(topic)
        case ErrorCode.INVALID_TOPIC_EXCEPTION:
            return ApiError(422, error.message or f"{topic!r} is no legal name of a topic")
        case ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            return ApiError(40301, str(error))
    return of_broker(error)


def no_topic(topic: str) -> ApiError:
    return ApiError(40401, f"There is no topic {topic!r}.")


def no_partition(topic: str, partition: int | str) -> ApiError:
    return ApiError(40402, f"Topic {topic!r} has no partition {partition}.")

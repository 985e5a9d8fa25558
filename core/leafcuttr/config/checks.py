"""Checks of single values that no range or list of choices can express. Each returns the reason, or None."""

import re
from typing import Final

from leafcuttr.config.setting import Value

_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}\Z")
_REPLICA: Final = re.compile(r"[0-9]+:[0-9]+\Z")
_WAYS: Final = ("none", "basic", "bearer", "mtls")


def gzip_level(value: Value) -> str | None:
    """-1 (the library's own default) or 1 to 9."""
    allowed = isinstance(value, int) and (value == -1 or 1 <= value <= 9)
    return None if allowed else "Value must be between 1 and 9 or equal to -1"


def not_empty(value: Value) -> str | None:
    """A value may be left out, but if given it has to say something."""
    return "Value must be non-empty" if value is not None and not value else None


def topic_name(value: Value) -> str | None:
    """A legal name of a topic, or none."""
    if value is None or (isinstance(value, str) and _TOPIC.match(value) and value not in (".", "..")):
        return None
    return "Value must be the name of a topic: up to 249 ASCII letters, digits, '.', '_' and '-'"


def throttled_replicas(value: Value) -> str | None:
    """`*`, `none`, or a list of partition:broker. `{name}` in the reason stands for the setting."""
    if not isinstance(value, tuple) or value in ((), ("*",), ("none",)):
        return None
    if all(_REPLICA.match(one.strip()) for one in value):
        return None
    return (
        "{name} must be the literal '*' or a list of replicas in the following format: "
        "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    )


def with_classic(value: Value) -> str | None:
    """A list of group protocols, which has to name the classic one."""
    if isinstance(value, tuple) and "classic" not in value:
        return "Disabling the 'classic' protocol is not supported."
    return None


def host_limits(value: Value) -> str | None:
    """`host:count` pairs."""
    if not isinstance(value, str) or not value.strip():
        return None
    for pair in value.split(","):
        host, _, count = pair.strip().rpartition(":")
        if not host or not count.isascii() or not count.isdigit():
            return f"{pair.strip()!r} is not host:count"
    return None


_KAFKA: Final = "org.apache.kafka.common.security"
_JWT_VALIDATORS: Final = ("DefaultJwtValidator", "BrokerJwtValidator")
_SERVER_HANDLERS: Final = (
    f"{_KAFKA}.oauthbearer.OAuthBearerValidatorCallbackHandler",
    f"{_KAFKA}.oauthbearer.secured.OAuthBearerValidatorCallbackHandler",
    f"{_KAFKA}.plain.internals.PlainServerCallbackHandler",
    f"{_KAFKA}.scram.internals.ScramServerCallbackHandler",
)


def jwt_validator(value: Value) -> str | None:
    """One of Kafka's classes that check signatures."""
    names = [f"{_KAFKA}.oauthbearer.{name}" for name in _JWT_VALIDATORS]
    if value in names:
        return None
    return f"Java classes cannot be loaded, and tokens would be checked otherwise; allowed is {' or '.join(names)}"


def server_callback_handler(value: Value) -> str | None:
    """One of Kafka's classes that do what the broker does."""
    if value is None or value in _SERVER_HANDLERS:
        return None
    if isinstance(value, str) and value.endswith("OAuthBearerUnsecuredValidatorCallbackHandler"):
        return "tokens that nobody has signed would be taken"
    return (
        "Java classes cannot be loaded, and log-ins would be decided otherwise; allowed is "
        f"{' or '.join(_SERVER_HANDLERS)}"
    )


STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def authorizer(value: Value) -> str | None:
    """None, or the one that is here."""
    if value in ("", STANDARD_AUTHORIZER):
        return None
    return (
        f"Java classes cannot be loaded; allowed is {STANDARD_AUTHORIZER}, whose rules are here, or nothing"
    )


def metrics_auth(value: Value) -> str | None:
    """Ways to authenticate over HTTP."""
    given = value if isinstance(value, tuple) else ()
    known = ", ".join(_WAYS)
    wrong = [each for each in given if each not in _WAYS]
    if wrong:
        return f"{wrong[0]!r} is none of {known}"
    return None if given else f"at least one of {known} has to be named"


def principals(value: Value) -> str | None:
    """Principals with semicolons between them."""
    for each in principals_of(value):
        kind, colon, name = each.partition(":")
        if not (kind and colon and name):
            return f"{each!r} is not type:name, such as User:alice"
    return None


def principals_of(value: Value) -> list[str]:
    """The principals of such a text."""
    return [each.strip() for each in str(value or "").split(";") if each.strip()]


def jaas_entry(value: Value) -> str | None:
    """Taken while the broker runs, one that is none would let nobody log in at the listener any more."""
    from leafcuttr.config.jaas import JaasError, parse_entry

    if value is None:
        return None
    try:
        parse_entry(str(value))
    except JaasError as error:
        return str(error)
    return None

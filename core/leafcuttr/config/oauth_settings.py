"""Broker settings of SASL with OAuth tokens."""

from functools import partial
from typing import Final

from leafcuttr.config.checks import jwt_validator
from leafcuttr.config.setting import BOOLEAN, CLASS, INT, LIST, LONG, PASSWORD, STRING, ConfigKey, Effect

unused: Final = partial(
    ConfigKey,
    effect=Effect.NONE,
    reason="the broker checks tokens, and requests none",
)

SETTINGS: Final[tuple[ConfigKey, ...]] = (
    unused(
        "sasl.oauthbearer.assertion.algorithm",
        STRING,
        "RS256",
        "The algorithm that signs a client's assertion.",
        choices=("ES256", "RS256"),
        ignore_case=True,
    ),
    unused(
        "sasl.oauthbearer.assertion.claim.aud", STRING, None, "The audience claim of a client's assertion."
    ),
    unused(
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        INT,
        300,
        "How long a client's assertion is valid.",
        unit="seconds",
        minimum=0,
        maximum=86_400,
    ),
    unused("sasl.oauthbearer.assertion.claim.iss", STRING, None, "The issuer claim of a client's assertion."),
    unused(
        "sasl.oauthbearer.assertion.claim.jti.include",
        BOOLEAN,
        False,
        "Give a client's assertion an id of its own.",
    ),
    unused(
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        INT,
        60,
        "How far before its making a client's assertion is valid.",
        unit="seconds",
        minimum=0,
        maximum=3600,
    ),
    unused(
        "sasl.oauthbearer.assertion.claim.sub", STRING, None, "The subject claim of a client's assertion."
    ),
    unused("sasl.oauthbearer.assertion.file", STRING, None, "The file with a ready client's assertion."),
    unused(
        "sasl.oauthbearer.assertion.private.key.file",
        STRING,
        None,
        "The file with the key that signs a client's assertion.",
    ),
    unused(
        "sasl.oauthbearer.assertion.private.key.passphrase", PASSWORD, None, "The passphrase of that key."
    ),
    unused(
        "sasl.oauthbearer.assertion.template.file",
        STRING,
        None,
        "The file with more header fields and claims for a client's assertion.",
    ),
    unused(
        "sasl.oauthbearer.client.credentials.client.id",
        STRING,
        None,
        "The client's id at the token's issuer.",
    ),
    unused(
        "sasl.oauthbearer.client.credentials.client.secret",
        PASSWORD,
        None,
        "The client's secret at the token's issuer.",
    ),
    ConfigKey(
        "sasl.oauthbearer.clock.skew.seconds",
        INT,
        30,
        "How far the clocks of broker and issuer may differ.",
        unit="seconds",
    ),
    ConfigKey("sasl.oauthbearer.expected.audience", LIST, (), "The audiences that a token has to be for."),
    ConfigKey("sasl.oauthbearer.expected.issuer", STRING, None, "The issuer that a token has to be from."),
    ConfigKey(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        LONG,
        3_600_000,
        "How often the issuer's keys are fetched again.",
        unit="ms",
    ),
    ConfigKey(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        LONG,
        10_000,
        "The longest pause before the issuer's keys are requested again.",
        unit="ms",
    ),
    ConfigKey(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        LONG,
        100,
        "The first pause before the issuer's keys are requested again.",
        unit="ms",
    ),
    ConfigKey(
        "sasl.oauthbearer.jwks.endpoint.url",
        STRING,
        None,
        "The JSON Web Key Set that tokens are checked with: https:, http:, or file: and a path.",
    ),
    unused(
        "sasl.oauthbearer.jwt.retriever.class",
        CLASS,
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
        "The class that fetches tokens.",
    ),
    unused(
        "sasl.oauthbearer.jwt.validator.class",
        CLASS,
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
        "The class that checks tokens: Kafka's own, whose rules these are.",
        check=jwt_validator,
        reason="tokens are checked by the rules of Kafka's own class, always with their signatures",
    ),
    unused("sasl.oauthbearer.scope", STRING, None, "The scope that is requested for a token."),
    ConfigKey("sasl.oauthbearer.scope.claim.name", STRING, "scope", "The claim that holds a token's scope."),
    ConfigKey("sasl.oauthbearer.sub.claim.name", STRING, "sub", "The claim that holds a token's subject."),
    unused("sasl.oauthbearer.token.endpoint.url", STRING, None, "Where tokens are issued."),
)

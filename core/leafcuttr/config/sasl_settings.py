"""Broker settings of SASL."""

from functools import partial
from typing import Final

from leafcuttr.config.checks import jaas_entry, server_callback_handler
from leafcuttr.config.setting import (
    CLASS,
    DOUBLE,
    INT,
    LIST,
    LONG,
    PASSWORD,
    SHORT,
    STRING,
    ConfigKey,
    Effect,
)

unused: Final = partial(
    ConfigKey,
    effect=Effect.NONE,
    reason="the broker logs in nowhere, and so has no tickets of its own",
)
used: Final = partial(ConfigKey, dynamic=True, per_broker=True)

SETTINGS: Final[tuple[ConfigKey, ...]] = (
    unused(
        "sasl.client.callback.handler.class", CLASS, None, "The class that answers callbacks of SASL clients."
    ),
    used(
        "sasl.enabled.mechanisms",
        LIST,
        ("GSSAPI",),
        "What clients of listeners with SASL may use: GSSAPI, OAUTHBEARER, PLAIN, SCRAM-SHA-256, SCRAM-SHA-512.",
    ),
    used(
        "sasl.jaas.config",
        PASSWORD,
        None,
        "The users for PLAIN, the keytab for GSSAPI, as a JAAS entry: listener.name.<name>.plain.sasl.jaas.config.",
        check=jaas_entry,
    ),
    unused(
        "sasl.kerberos.kinit.cmd",
        STRING,
        "/usr/bin/kinit",
        "The path of kinit.",
        dynamic=True,
        per_broker=True,
    ),
    unused(
        "sasl.kerberos.min.time.before.relogin",
        LONG,
        60_000,
        "The least time between two Kerberos logins.",
        unit="ms",
        dynamic=True,
        per_broker=True,
    ),
    used(
        "sasl.kerberos.principal.to.local.rules",
        LIST,
        ("DEFAULT",),
        "Rules that make the name of a user of a Kerberos principal.",
    ),
    used(
        "sasl.kerberos.service.name",
        STRING,
        None,
        "The first part of the broker's Kerberos principal, which clients have to use too.",
    ),
    unused(
        "sasl.kerberos.ticket.renew.jitter",
        DOUBLE,
        0.05,
        "The part of random time added to a ticket's renewal.",
        dynamic=True,
        per_broker=True,
    ),
    unused(
        "sasl.kerberos.ticket.renew.window.factor",
        DOUBLE,
        0.8,
        "The part of a ticket's life after which it is renewed.",
        dynamic=True,
        per_broker=True,
    ),
    unused("sasl.login.callback.handler.class", CLASS, None, "The class that answers callbacks of a login."),
    unused("sasl.login.class", CLASS, None, "The class that logs in."),
    unused(
        "sasl.login.connect.timeout.ms",
        INT,
        None,
        "How long connecting to a token's issuer may take.",
        unit="ms",
    ),
    unused(
        "sasl.login.read.timeout.ms",
        INT,
        None,
        "How long the answer of a token's issuer may take.",
        unit="ms",
    ),
    unused(
        "sasl.login.refresh.buffer.seconds",
        SHORT,
        300,
        "The time before its end at which a token is refreshed at the latest.",
        unit="seconds",
        dynamic=True,
        per_broker=True,
    ),
    unused(
        "sasl.login.refresh.min.period.seconds",
        SHORT,
        60,
        "The least time between two refreshes of a token.",
        unit="seconds",
        dynamic=True,
        per_broker=True,
    ),
    unused(
        "sasl.login.refresh.window.factor",
        DOUBLE,
        0.8,
        "The part of a token's life after which it is refreshed.",
        dynamic=True,
        per_broker=True,
    ),
    unused(
        "sasl.login.refresh.window.jitter",
        DOUBLE,
        0.05,
        "The part of random time added to a token's refresh.",
        dynamic=True,
        per_broker=True,
    ),
    unused(
        "sasl.login.retry.backoff.max.ms",
        LONG,
        10_000,
        "The longest pause before a login is tried again.",
        unit="ms",
    ),
    unused(
        "sasl.login.retry.backoff.ms", LONG, 100, "The first pause before a login is tried again.", unit="ms"
    ),
    unused("sasl.mechanism.controller.protocol", STRING, "GSSAPI", "The mechanism used with controllers."),
    unused(
        "sasl.mechanism.inter.broker.protocol",
        STRING,
        "GSSAPI",
        "The mechanism used among brokers.",
        dynamic=True,
        per_broker=True,
    ),
    unused(
        "sasl.server.callback.handler.class",
        CLASS,
        None,
        "The class that answers callbacks of a mechanism: listener.name.<name>.<mechanism>.sasl.server.callback....",
        check=server_callback_handler,
        reason="the broker checks log-ins itself, as Kafka's own classes do",
    ),
    ConfigKey(
        "sasl.server.max.receive.size",
        INT,
        524_288,
        "The largest SASL message that the broker reads before a client has logged in.",
        unit="bytes",
    ),
)

"""Records over HTTP: the REST proxy API v2, streams and bulk uploads.

This module is imported at every start, also where the proxy is off: it says what there is and imports nothing heavy.

The way of a request:
    service                 the service; its server is that of `leafcuttr_sdk.web`
    front                   which part answers
    app, parts              Quart, for all but producing and streams; what a part of it is made of
Producing:
    produce, bulk           a body of records; a record a line
    schemas                 records with schemas of the broker's registry, on all ways
    envelope, records       from JSON text to raw records; from those to bytes
    idempotency             answers kept by Idempotency-Key
The other endpoints:
    metadata, `consumers`, `streams`
What all of them use:
    proxy, settings         the broker and the life of the service; what can be set
    errors, negotiation     codes and messages; media types
    openapi, documentation  elements of OpenAPI for the pages of the parts; the document
Authentication:
    passwords, command      the file of names and hashes; `leafcuttr http passwd`, which writes it
    password_authenticator  the authenticator that reads it
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from leafcuttr_sdk.plugin import Plugin
from leafcuttr_sdk.services import Service, ServiceSpec

if TYPE_CHECKING:
    import click

    from leafcuttr_sdk.authentication import Authenticator, AuthenticatorSpec
    from leafcuttr_sdk.broker import Broker
    from leafcuttr_sdk.cli import CliCommand
    from leafcuttr_sdk.settings import Setting

PLUGIN: Final = Plugin(
    name="http",
    api_version=1,
    summary="Produce and consume over HTTP: REST proxy API v2, bulk uploads, streams",
    enabled_by="lc.http.proxy.enable",
    extra="http",
    modules=("hypercorn", "quart", "quart_trio"),
)


def leafcuttr_register_settings() -> "Iterable[Setting]":
    from leafcuttr_http.settings import settings

    return settings()


def leafcuttr_register_cli_commands() -> "Iterable[CliCommand]":
    from leafcuttr_sdk.cli import CliCommand

    return [CliCommand("http", "manage the HTTP proxy", _load)]


def leafcuttr_register_authenticators(broker: "Broker") -> "Iterable[AuthenticatorSpec]":
    from leafcuttr_sdk.authentication import AuthenticatorSpec

    def make() -> "Authenticator":
        from leafcuttr_http.password_authenticator import password_authenticator

        return password_authenticator(broker)

    summary = "names and passwords in the file of lc.http.proxy.passwords.file"
    return [AuthenticatorSpec("http-passwords", summary, make, ("basic",))]


def leafcuttr_register_services() -> Iterable[ServiceSpec]:
    return [ServiceSpec("http", _make)]


def _make(broker: "Broker") -> Service:
    from leafcuttr_http.service import HttpProxy

    return HttpProxy(broker)


def _load() -> "click.Command":
    from leafcuttr_http.command import http

    return http

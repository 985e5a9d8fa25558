"""The options of `leafcuttr mqtt publish` and `subscribe` about TLS, as mosquitto's clients have them."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from leafcuttr_mqtt.people.dialing import DialSecurity

F = TypeVar("F", bound=Callable[..., Any])
_META: Final = "leafcuttr_mqtt.security"


def security_options(function: F) -> F:
    """Add them to a command, which does not get their values: `security_given` has them."""
    for option in (
        _option(
            "--insecure", "insecure", is_flag=True, help="Accept a certificate that is for another host."
        ),
        _option("--key", "key", metavar="FILE", help="The private key of --cert, if that file has it not."),
        _option("--cert", "certificate", metavar="FILE", help="The certificate to show, in PEM."),
        _option(
            "--cafile",
            "ca_file",
            metavar="FILE",
            help="The authorities to trust, in PEM.  [default: the system's]",
        ),
        _option("--tls", "tls", is_flag=True, help="Use TLS; the other options about it mean it too."),
    ):
        function = option(function)
    return function


def _option(name: str, field: str, **more: Any) -> Callable[[F], F]:
    def keep(context: click.Context, _: click.Parameter, value: Any) -> None:
        context.meta.setdefault(_META, {})[field] = value

    return click.option(name, field, expose_value=False, callback=keep, **more)


def security_given() -> DialSecurity:
    """Of the command that runs. Raises click.UsageError."""
    given = click.get_current_context().meta.get(_META, {})
    security = DialSecurity(**{field: value for field, value in given.items() if value is not None})
    if security.key is not None and security.certificate is None:
        raise click.UsageError("--key needs --cert")
    return security

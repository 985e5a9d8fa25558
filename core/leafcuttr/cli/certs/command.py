"""`leafcuttr certs`: show certificates, check those of a configuration, have a broker read them again, make some to try
with."""

import sys
import time
from pathlib import Path

import click

from leafcuttr.cli.common.options.target import target_options
from leafcuttr.cli.common.output import ItemResults, json_option, print_json
from leafcuttr.cli.common.target import Target


@click.group()
def command() -> None:
    """Show, check, reload and make certificates.

    Exit status: 0 done and nothing wrong, 1 something is wrong, refused, or nothing answers, 2 wrong usage.
    """


@command.command(short_help="Show the certificates of a file or of a server.")
@click.argument("what", metavar="FILE|HOST:PORT")
@click.option(
    "--password-file",
    type=click.Path(path_type=Path),
    help="A file with the password of a keystore. Without it there is a prompt, or it is read from standard input.",
)
@click.option("--timeout", type=click.FloatRange(0.1, 300), default=5.0, show_default=True, metavar="SECONDS")
@json_option
def show(what: str, password_file: Path | None, timeout: float, as_json: bool) -> None:
    """Show the certificates of a file or of a server: subject, issuer, names, dates, key.

    A file may be PEM, JKS, PKCS#12 or DER. Nothing is verified. The subject is as it is in the name of a principal.

    \b
    Examples:
      leafcuttr certs show broker.pem
      leafcuttr certs show broker.p12 --password-file secret --json
      leafcuttr certs show kafka.example.org:9093
    """
    from leafcuttr.cli.certs import found

    file = Path(what)
    host, colon, port = what.rpartition(":")
    if file.exists() or not (colon and port.isdecimal()):
        password = found.password_of(file, password_file)
        certificates = found.certificates_of_file(file, password)
    else:
        certificates = found.certificates_of_server(host.strip("[]"), int(port), timeout)
    now_s = time.time()
    if as_json:
        print_json([found.as_json(one, now_s) for one in certificates])
        return
    for number, one in enumerate(certificates):
        if number:
            click.echo()
        found.show(one, now_s)


@command.command(short_help="Check the certificates of a configuration.")
@click.option(
    "--config",
    "-c",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The server.properties file.",
)
@click.option(
    "--override",
    "-o",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting as `serve -o` takes it; may be repeated.",
)
@json_option
def check(file: Path | None, overrides: tuple[str, ...], as_json: bool) -> None:
    """Check the keys and certificates of every listener with TLS.

    Whether they can be read and belong together, their dates, whether they are for the advertised names, how long the
    keys are, and who can read them.

    \b
    Examples:
      leafcuttr certs check --config server.properties
    """
    from leafcuttr.cli.certs.listeners import checked

    found = list(checked(file, overrides))
    if as_json:
        print_json(
            [
                {"listener": one.name, "host": one.host, "wrong": one.wrong, "doubtful": one.doubtful}
                for one in found
            ]
        )
    elif not found:
        click.echo("no listener has TLS")
    for one in () if as_json else found:
        if not one.wrong and not one.doubtful:
            click.echo(
                f"{one.name}: its certificate is right" + (f", and for {one.host}" if one.host else "")
            )
        for line in one.wrong:
            click.echo(f"{one.name}: wrong: {line}")
        for line in one.doubtful:
            click.echo(f"{one.name}: warning: {line}")
    sys.exit(any(one.wrong for one in found))


@command.command(short_help="Have a running broker read its certificates again.")
@target_options
@json_option
def reload(target: Target, as_json: bool) -> None:
    """Have a running broker read the files of its certificates again, now.

    What does not fit is refused, and the broker goes on with what it has. A Kafka reads those again whose setting was
    changed while it runs.

    \b
    Examples:
      leafcuttr certs reload
    """
    from leafcuttr.cli.certs.listeners import read_again

    results = ItemResults("listener", as_json)
    for listener, why in read_again(target):
        if why is None:
            results.done(listener, f"{listener}: read")
        else:
            results.failed(listener, why)
    results.finish()


@command.command(short_help="Make a certificate authority to try with.")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="A name or address that clients use for the broker; may be repeated. Without it localhost.",
)
@click.option(
    "--client", "clients", multiple=True, metavar="NAME", help="A client with a certificate; may be repeated."
)
@click.option("--days", type=click.IntRange(1, 36_500), default=365, show_default=True)
def new(folder: Path, hosts: tuple[str, ...], clients: tuple[str, ...], days: int) -> None:
    """Make a certificate authority, a key for the broker, and keys for clients, as PEM in a folder.

    It is for trying, and for tests: the key of the authority lies in the folder without a password. If there is an
    authority already it signs what is new: a broker's key only with --host. Needs the extra leafcuttr[security].

    \b
    Examples:
      leafcuttr certs new certs --host localhost --client alice
      leafcuttr certs new certs --client bob
    """
    from leafcuttr.cli.certs.made import CA_CERTIFICATE, Authority

    for name in clients:
        if not name or "/" in name or name in ("ca", "broker", ".", ".."):
            raise click.UsageError(
                f"--client {name}: it is the name of a file, and another than ca and broker"
            )
    authority = Authority(folder, days)
    if authority.is_new:
        click.echo(f"{folder / CA_CERTIFICATE}: clients trust it (ssl.ca.location, ssl.truststore.location)")
    if hosts or authority.is_new:
        made = hosts or ("localhost", "127.0.0.1", "::1")
        click.echo(
            f"{authority.issue('broker', made)}: the broker's (ssl.keystore.location), for {', '.join(made)}"
        )
    for name in clients:
        click.echo(f"{authority.issue(name, ())}: the key of a client, whose principal is User:CN={name}")

"""The listeners of plugins that are switched on: what would keep them from serving."""

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Final

from leafcuttr.cli.doctor.findings import DoctorFinding, fine, problem, warning
from leafcuttr.cli.doctor.local.site import Site
from leafcuttr.config.listeners import Listener
from leafcuttr.errors import StartError

if TYPE_CHECKING:
    from leafcuttr.plugins.loaded import Loaded

_KEYSTORE: Final = ".ssl.keystore.location"


def can_listen(site: Site) -> Iterator[DoctorFinding]:
    """The address of every plugin that is on is free, and its TLS files can be used."""
    listening = [(plugin, prefix) for plugin in site.plugins.enabled for prefix in _prefixes(plugin)]
    if not listening:
        yield fine("no plugin that is on listens anywhere")
        return
    good = []
    with ExitStack() as opened:
        # Held until the end: two listeners of one address are free each by itself.
        for listener in site.listeners:
            with suppress(StartError):  # which another check is about
                _open(listener, "listeners", opened)
        for plugin, prefix in listening:
            wrong = [*_tls(site, plugin, prefix), *_address(site, prefix, opened)]
            yield from wrong
            if not wrong:
                good.append(prefix)
    if good:
        yield fine(f"can be opened: {', '.join(good)}")


def _open(listener: Listener, setting: str, opened: ExitStack) -> None:
    from leafcuttr.net.binding import bind

    for sock in bind(listener, 1, setting=setting)[1]:
        opened.callback(sock.close)


def _prefixes(plugin: "Loaded") -> list[str]:
    """The prefixes of the settings of its listeners: those that were declared with `listener_settings`."""
    names = {setting.name for setting in plugin.settings}
    prefixes = [name.removesuffix(_KEYSTORE) for name in sorted(names) if name.endswith(_KEYSTORE)]
    return [prefix for prefix in prefixes if f"{prefix}.port" in names]


def _tls(site: Site, plugin: "Loaded", prefix: str) -> Iterator[DoctorFinding]:
    from leafcuttr.net.doubts import doubts_of_listener
    from leafcuttr.net.tls import server_context
    from leafcuttr.net.tls_files import TlsError, files_of_prefix
    from leafcuttr.plugins.settings_views import plugin_settings

    files = files_of_prefix(plugin_settings(site.settings, plugin.name), prefix)
    try:
        if not files.has_key:
            server_context(files)
            return
        for doubt in doubts_of_listener(files, []):
            yield warning(
                doubt.line,
                "Some clients may refuse it, or others may get at its key.",
                "have another certificate issued, or change the mode of the file",
            )
    except TlsError as error:
        yield problem(
            str(error),
            f"The plugin {plugin.name} does not serve without it.",
            f"correct the settings or the file; what they may be: leafcuttr config describe '{prefix}.ssl.*'",
        )


def _address(site: Site, prefix: str, opened: ExitStack) -> Iterator[DoctorFinding]:
    if site.running is not None:
        return
    host, port = site.settings.optional_text(f"{prefix}.host"), site.settings.int(f"{prefix}.port")
    if port < 0:
        return  # it is not opened
    if host is None:
        host = site.listeners[0].host
    try:
        _open(Listener(prefix, host, port, host, port), f"{prefix}.port", opened)
    except StartError as error:
        yield problem(
            str(error),
            "The plugin does not serve as long as it cannot listen there.",
            f"stop what listens there, or choose another port: {site.line(f'{prefix}.port', str(port + 1))}",
            f"or another address of this machine: {site.line(f'{prefix}.host', 'localhost')}",
        )

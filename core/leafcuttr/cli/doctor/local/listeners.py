"""The addresses of a configuration: whether they can be opened, what is advertised, which clients are accepted."""

import errno
import ipaddress
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from leafcuttr.cli.doctor.findings import DoctorFinding, fine, problem, warning
from leafcuttr.cli.doctor.local.site import Site
from leafcuttr.config.listeners import Listener, advertised_by_host_name
from leafcuttr.errors import StartError

_WILDCARDS = ("", "0.0.0.0", "::")


def can_be_opened(site: Site) -> Iterator[DoctorFinding]:
    """Every listener's address is of this machine, allowed and free."""
    if site.running is not None:
        yield fine(f"process {site.running} is this broker and holds its ports")
        return
    from leafcuttr.net.binding import bind

    good = []
    for listener in site.listeners:
        try:
            _, socks = bind(listener, 1)
        except StartError as error:
            yield _why_not(site, listener, str(error))
        else:
            for sock in socks:
                sock.close()
            good.append(str(listener))
    if good:
        yield fine(f"free: {', '.join(good)}")
    yield from _metrics(site)


def _metrics(site: Site) -> Iterator[DoctorFinding]:
    """A port of metrics that is in use does not stop the broker, but its metrics cannot be read."""
    host, port = site.settings.text("lc.metrics.host"), site.settings.int("lc.metrics.port")
    if not site.settings.bool("lc.metrics.enable") or not port:
        return
    listener = Listener("metrics", host, port, host, port)
    if _reason(listener) == errno.EADDRINUSE:
        yield warning(
            f"port {port} for metrics and health checks is taken by {_holders(port)}",
            "The broker starts without them, and another program answers at that port.",
            site.line("lc.metrics.port", str(port + 1)),
            site.line("lc.metrics.enable", "false"),
        )


def _holders(port: int) -> str:
    found = sorted(listening_processes(port))
    return ", ".join(f"process {pid} ({_command(pid)})" for pid in found) or "another program"


def _why_not(site: Site, listener: Listener, words: str) -> DoctorFinding:
    reason = _reason(listener)
    if reason == errno.EADDRINUSE:
        return problem(
            f"port {listener.port} is taken by {_holders(listener.port)}",
            "The broker does not start while another program listens there.",
            f"stop that program, or choose another port: {_changed(site, listener, port=_free_port())}",
        )
    if reason == errno.EACCES:
        return problem(
            f"port {listener.port} is below 1024, which this user may not open",
            "The broker does not start.",
            f"choose another port: {_changed(site, listener, port=9092)}",
            "or in the systemd unit: AmbientCapabilities=CAP_NET_BIND_SERVICE",
        )
    return problem(
        words,
        "A broker can only listen at addresses of its own machine; what clients outside see belongs to "
        "advertised.listeners.",
        _changed(site, listener, host="0.0.0.0"),
        site.line("advertised.listeners", f"{listener.name}://{listener.host}:{listener.port}"),
    )


def _reason(listener: Listener) -> int | None:
    """Why the listener cannot be opened; None if its name cannot be resolved."""
    try:
        found = socket.getaddrinfo(
            listener.host or None, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (OSError, UnicodeError):
        return None
    reasons = set()
    for family, kind, _, _, address in found:
        with socket.socket(family, kind) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                sock.bind(address)
                sock.listen(1)
            except OSError as error:
                reasons.add(error.errno)
    return next((one for one in (errno.EADDRINUSE, errno.EACCES, *reasons) if one in reasons), None)


def _changed(site: Site, listener: Listener, **changes: object) -> str:
    changed = [one._replace(**changes) if one is listener else one for one in site.listeners]  # type: ignore[arg-type]
    return site.line("listeners", ",".join(map(str, changed)))


def _free_port() -> int:
    with socket.socket() as probe:
        for port in (9093, 9094, 9192, 19092):
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    return 29092


def advertises_reachable(site: Site) -> Iterator[DoctorFinding]:
    """Clients that use an advertised address reach the listener."""
    guessed = advertised_by_host_name(site.settings)
    for listener in site.listeners:
        host = listener.advertised_host
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            found = []
        addresses = {str(address[0]) for *_, address in found}
        if listener.name in guessed:
            known = (
                "a name that even this machine cannot resolve"
                if not found
                else f"on this machine {', '.join(sorted(addresses))}"
            )
            yield warning(
                f"{listener} binds every interface and has no advertised address: clients get {host}, {known}",
                "Clients connect to the advertised address. The name of a container, or of a host that is in no name "
                "server, cannot be resolved by other machines.",
                site.line(
                    "advertised.listeners", f"{listener.name}://NAME-THAT-CLIENTS-KNOW:{listener.port}"
                ),
            )
        elif not found:
            yield warning(
                f"{listener} advertises {listener.advertised}, a name that this machine cannot resolve",
                "If clients cannot resolve it either, they find the broker and then cannot connect to it.",
                site.line(
                    "advertised.listeners", f"{listener.name}://NAME-THAT-CLIENTS-KNOW:{listener.port}"
                ),
            )
        elif _all_loopback(addresses) and not _is_local(listener):
            yield warning(
                f"{listener} accepts clients from other machines and advertises {listener.advertised}, "
                "which is their own machine",
                "Only clients on this machine can connect to it.",
                site.line("advertised.listeners", f"{listener.name}://{_own_name()}:{listener.port}"),
                "or, if no others are meant: "
                + site.line("listeners", f"{listener.name}://localhost:{listener.port}"),
            )
        else:
            yield fine(f"{listener} advertises {listener.advertised}")


def requires_authentication(site: Site) -> Iterator[DoctorFinding]:
    """No listener that other machines can reach accepts clients without authentication."""
    for listener in site.listeners:
        if listener.protocol.startswith("SASL") or _requires_certificates(site, listener):
            yield fine(f"{listener} requires authentication")
        elif _is_local(listener):
            yield fine(f"{listener} is for this machine only")
        else:
            yield warning(
                f"{listener} accepts every client that reaches it, without authentication",
                "Every client in that network may read, write and delete every topic.",
                site.line("listeners", f"{listener.name}://127.0.0.1:{listener.port}")
                + ", or an address of a private network",
                f"or a firewall: ufw allow from 192.0.2.0/24 to any port {listener.port} proto tcp",
                "so that the broker does not start like this: " + site.line("lc.listeners.open", "refuse"),
            )


def _requires_certificates(site: Site, listener: Listener) -> bool:
    from leafcuttr.net.listener_tls import tls_files
    from leafcuttr.net.tls_files import TlsError

    try:
        return listener.protocol == "SSL" and tls_files(site.settings, listener).client_auth == "required"
    except TlsError:  # which another check is about
        return False


def _is_local(listener: Listener) -> bool:
    if listener.host in _WILDCARDS:
        return False
    try:
        found = socket.getaddrinfo(listener.host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return _all_loopback({str(address[0]) for *_, address in found})


def _all_loopback(addresses: set[str]) -> bool:
    return all(ipaddress.ip_address(one.partition("%")[0]).is_loopback for one in addresses)


def _own_name() -> str:
    """The address of this machine towards other networks, else its name. No packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return socket.gethostname()


def listening_processes(port: int) -> set[int]:
    """The processes that listen at a TCP port, as far as this user may see them in /proc."""
    inodes = set()
    for table in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                inodes.add(f"socket:[{fields[9]}]")
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(os.readlink(one) in inodes for one in (process / "fd").iterdir()):  # noqa: PTH115
                found.add(int(process.name))
        except OSError:
            continue
    return found


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return "?"
    return " ".join(word.decode(errors="replace") for word in words)[:60]

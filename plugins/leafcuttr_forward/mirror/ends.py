"""One end of a mirror, as the command line has it: `host:port[,host:port][/topic]`."""

from pathlib import Path
from typing import Final, NamedTuple

from leafcuttr_forward.names import check_topic
from leafcuttr_forward.relay.plan import parse_address
from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.properties import parse_properties

_DEFAULT_PORT: Final = 9092
_LARGEST: Final = 1 << 20
_SERVERS: Final = "bootstrap.servers"


class MirrorEnd(NamedTuple):
    """Where a cluster is, and the topic of it that is meant; None: all of them."""

    servers: str
    topic: str | None

    @property
    def first(self) -> str:
        """One address, for names."""
        return self.servers.partition(",")[0]


def parse_end(text: str) -> MirrorEnd:
    """Raises ValueError with what is expected."""
    servers, slash, topic = text.partition("/")
    if slash and not topic:
        raise ValueError("behind / the name of a topic is missing")
    if "/" in topic:
        raise ValueError("write HOST:PORT[,HOST:PORT][/TOPIC], without a scheme before it")
    if slash:
        check_topic(topic)
    found: list[str] = []
    for each in servers.split(","):
        host, port = parse_address(each.strip(), _DEFAULT_PORT)
        if not host:
            raise ValueError("write HOST:PORT[,HOST:PORT][/TOPIC]")
        found.append(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    return MirrorEnd(",".join(found), topic or None)


def properties_of(end: MirrorEnd, config: str | None) -> dict[str, str]:
    """Those of a file of Kafka's clients, with the addresses of the command line. Raises PluginError."""
    given: dict[str, str] = {}
    if config is not None:
        try:
            with Path(config).open(encoding="utf-8") as file:
                given = {each.key: each.value for each in parse_properties(file.read(_LARGEST))}
        except OSError as error:
            raise PluginError(f"{config} cannot be read: {error.strerror or error}") from None
        except ValueError as error:
            raise PluginError(f"{config} cannot be read: {error}") from None
    return {"client.id": "leafcuttr-mirror", **given, _SERVERS: end.servers}

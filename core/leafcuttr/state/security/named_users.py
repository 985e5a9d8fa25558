"""What JAAS entries say of log-ins: the names and passwords for PLAIN, and whom to trust for the keys of tokens.

Where an entry is: `jaas_entries`.
"""

from collections.abc import Mapping
from typing import Final

from leafcuttr.config.catalog import LISTENER_PREFIX
from leafcuttr.config.jaas import parse_entry
from leafcuttr.config.settings import Settings
from leafcuttr.state.security.jaas_entries import jaas_entries

_PLAIN_MODULE: Final = "PlainLoginModule"


def trusted_file(settings: Settings, listener: str) -> str | None:
    """The authorities that sign the certificate of the keys' endpoint: `ssl.truststore.location` of the mechanism's
    JAAS entry, where Kafka has it."""
    name = f"{LISTENER_PREFIX}{listener.lower()}.oauthbearer.sasl.jaas.config"
    text = settings.values.get(name)
    if text is None:
        return None
    return parse_entry(str(text)).options.get("ssl.truststore.location")


def named_users(settings: Settings, listener: str) -> Mapping[str, str] | None:
    """Names and passwords for PLAIN that the settings have, or the file that KAFKA_OPTS names; None: none of them says
    something. Raises StartError."""
    entries = jaas_entries(settings, listener, "PLAIN")[1]
    return next((entry.users for entry in entries if entry.is_of(_PLAIN_MODULE)), None)

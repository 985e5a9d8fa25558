"""The TLS of a client, by the settings `ssl.*` of a bridge."""

import ssl

from leafcuttr_mqtt.bridge.names import PREFIX
from leafcuttr_mqtt.bridge.options import Bridge
from leafcuttr_sdk.errors import PluginError


def client_context(bridge: Bridge) -> ssl.SSLContext | None:
    """None: without TLS. Raises PluginError: a file cannot be read, or is not what it has to be."""
    if not bridge.tls:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = bridge.check_host_name
    option, path = "ssl.truststore.location", bridge.truststore
    try:
        if bridge.truststore is None:
            context.load_default_certs()
        else:
            context.load_verify_locations(bridge.truststore)
        if bridge.keystore is not None:
            option, path = "ssl.keystore.location", bridge.keystore
            context.load_cert_chain(bridge.keystore, password=bridge.key_password or "")
    except (OSError, ssl.SSLError) as error:  # SSLError is an OSError; named for the reader
        raise PluginError(f"{PREFIX}{bridge.name}.{option}: {path} cannot be used: {error}") from None
    return context

"""Which fields the templates of settings may have, and what is set where nothing is."""

from typing import Final

KEY_FIELDS: Final = ("topic", "client_id")
"""Of the key of records. Beside these the captures of the mapping's filter."""
DEFAULT_KEY: Final = "{topic}"
EGRESS_FIELDS: Final = ("topic", "partition", "key")
"""Of the MQTT topic on the way down."""
EGRESS_PREFIXES: Final = ("header.",)

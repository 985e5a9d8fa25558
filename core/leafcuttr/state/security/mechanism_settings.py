"""Settings of log-ins, which a listener, and a mechanism of it, may have of its own."""

from leafcuttr.config.catalog import LISTENER_PREFIX
from leafcuttr.config.setting import Value
from leafcuttr.config.settings import Settings


def setting_of(settings: Settings, listener: str, mechanism: str, name: str) -> tuple[str, Value]:
    """The setting that counts for a mechanism of a listener, the narrowest first (KIP-86), and its value."""
    own = f"{LISTENER_PREFIX}{listener.lower()}."
    for each in (f"{own}{mechanism.lower()}.{name}", f"{own}{name}"):
        found = settings.values.get(each)
        if found is not None:
            return each, found
    return name, settings.values[name]

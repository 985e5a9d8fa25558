"""Settings of log-ins, which a listener, and a mechanism of it, may have of its own."""

from leafcuttr.config.catalog import LISTENER_PREFIX
from leafcuttr.config.setting import Value
from leafcuttr.config.settings import Settings


def setting_of(settings: Settings, listener: str, mechanism: str | None, name: str) -> tuple[str, Value]:
    """The setting that counts for a mechanism of a listener, the narrowest first (KIP-86), and its value. Without a
    mechanism: that of the listener, or of all."""
    own = f"{LISTENER_PREFIX}{listener.lower()}."
    narrow = () if mechanism is None else (f"{own}{mechanism.lower()}.{name}",)
    for each in (*narrow, f"{own}{name}"):
        found = settings.values.get(each)
        if found is not None:
            return each, found
    return name, settings.values[name]

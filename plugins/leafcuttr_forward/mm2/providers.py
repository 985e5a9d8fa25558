"""`${NAME:PATH:KEY}` in a value: what a provider has in the place of it (`leafcuttr_sdk.config_providers`)."""

from collections.abc import Callable, Sequence

from leafcuttr_sdk.config_providers import PREFIX as PREFIX
from leafcuttr_sdk.config_providers import ConfigProviders
from leafcuttr_sdk.properties import Property


def resolver(properties: Sequence[Property]) -> Callable[[str], str]:
    """What puts values in the place of references to the providers that these properties name. It raises ValueError
    with one clause; a reference to a provider that is not named is left as it is."""
    return ConfigProviders({each.key.strip(): each.value.strip() for each in properties}).resolve

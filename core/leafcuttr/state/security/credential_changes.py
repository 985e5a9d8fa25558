"""Changes of what clients log in with: for the listeners, for the log-ins of plugins' clients."""

from collections.abc import Callable

from leafcuttr.state.broker import Broker


def on_credential_change(broker: Broker, call: Callable[[], None]) -> None:
    """Have it called after each change of users, of delegation tokens, and of the users that settings name."""
    broker.users.on_change(lambda _: call())
    if broker.delegation_tokens is not None:
        broker.delegation_tokens.on_change(call)
    broker.settings.on_change(
        lambda names: call() if any(name.endswith("sasl.jaas.config") for name in names) else None
    )

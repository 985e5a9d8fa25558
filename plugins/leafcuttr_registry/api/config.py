"""Config: of the registry, of a context, of a subject."""

from leafcuttr_registry.api import answers
from leafcuttr_registry.api.endpoints import Api, add
from leafcuttr_registry.api.exchange import RegistryExchange
from leafcuttr_registry.subjects import scopes
from leafcuttr_registry.subjects.config import LevelError, read_update
from leafcuttr_registry.subjects.metadata import RuleError
from leafcuttr_registry.subjects.names import is_valid, normalized
from leafcuttr_registry.subjects.refusals import (
    invalid_level,
    invalid_rules,
    invalid_subject,
    no_config,
)
from leafcuttr_sdk.web.errors import ApiError
from leafcuttr_sdk.web.routes import Routes


def scope_of(exchange: RegistryExchange) -> str | None:
    """What the path names: None for the default context, which is that of the registry. Raises Refusal 42208."""
    given = exchange.parameters.get("subject")
    if given is None:
        return None
    if not is_valid(given, of_schemas=False):
        raise invalid_subject(given)
    return normalized(given) or None


def attach(routes: Routes, api: Api) -> None:
    async def read(exchange: RegistryExchange) -> None:
        name = scope_of(exchange)
        if exchange.flag("defaultToGlobal"):
            found = scopes.config_of(api.state, name)
        else:
            own = scopes.own_config(api.state, name)
            if own is None:
                raise no_config(name or "")
            found = own
        await exchange.give(answers.config(found))

    async def update(exchange: RegistryExchange) -> None:
        body = await exchange.body_json()
        try:
            changes = read_update(body)
        except LevelError:
            raise invalid_level() from None
        except RuleError as error:
            raise invalid_rules(str(error)) from None
        except ValueError as error:
            raise ApiError(400, f"{error}.") from None
        found = await api.registry.set_config(scope_of(exchange), changes)
        await exchange.give(answers.updated_config(found))

    async def delete(exchange: RegistryExchange) -> None:
        await exchange.give(answers.config(await api.registry.delete_config(scope_of(exchange))))

    for path in ("/config", "/config/{subject}"):
        add(routes, "GET", path, read)
        add(routes, "PUT", path, update)
        add(routes, "DELETE", path, delete)

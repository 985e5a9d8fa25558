"""What the endpoints work with."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol, TypeAlias

from leafcuttr_registry.api.answers import Rendering
from leafcuttr_registry.api.documentation import operation
from leafcuttr_registry.api.exchange import RegistryExchange
from leafcuttr_registry.registry import Registry
from leafcuttr_registry.settings import Options
from leafcuttr_registry.subjects import tags
from leafcuttr_registry.subjects.content import Content
from leafcuttr_registry.subjects.names import normalized
from leafcuttr_registry.subjects.state import State
from leafcuttr_sdk.web.routes import Routes

Answering: TypeAlias = Callable[[RegistryExchange], Awaitable[None]]


class Restartable(Protocol):
    """The service."""

    @property
    def registry(self) -> Registry: ...
    async def restart(self) -> None: ...


class Api:
    """One start of the service."""

    def __init__(self, service: Restartable, options: Options) -> None:
        self._service = service
        self.options: Final = options
        self.rendering: Final = Rendering(options.answers)

    @property
    def registry(self) -> Registry:
        return self._service.registry

    @property
    def state(self) -> State:
        return self._service.registry.state

    async def restart(self) -> None:
        """Raises Refusal, BrokerError."""
        await self._service.restart()

    def subject(self, exchange: RegistryExchange) -> str:
        """The subject of the path, or its alias."""
        return self.aliased(normalized(exchange.parameters["subject"]))

    def aliased(self, subject: str) -> str:
        """The alias that a subject's own config has for it, else itself. The alias of an alias is not asked for."""
        config = self.state.configs.get(subject)
        alias: str | None = config["alias"] if config is not None else None
        return normalized(alias) if alias else subject

    async def rendered(self, exchange: RegistryExchange, subject: str, content: Content) -> str | None:
        """The text in the form that `format` names; None for the one that it has. Raises Refusal 42201."""
        how = exchange.text("format").strip()
        return await self.registry.render(subject, content, how) if how else None

    async def tags(self, exchange: RegistryExchange, subject: str, content: Content) -> dict[str, Any]:
        """What has the tags that `findTags` names, for an answer. Raises Refusal 42201."""
        asked = exchange.texts("findTags")
        if not asked:
            return {}
        found = tags.answer(await self.registry.tags(subject, content), asked)
        return {"schemaTags": found} if found else {}


def add(routes: Routes, method: str, path: str, endpoint: Answering) -> None:
    """An endpoint; the front makes exchanges of this kind only."""
    routes.add(method, path, endpoint, operation(method, path))  # type: ignore[arg-type]

"""`lc.sasl.mechanisms`: the mechanisms of plugins that listeners with SASL offer (`server.login.plugged`).

An authenticator that has several of them is made once for all listeners. What its exchanges do wrong refuses, as for a
service that offers `sasl`; so does a `still_holds` that fails later.
"""

from collections.abc import Callable, Iterator
from functools import partial

from leafcuttr.errors import PluginError, StartError
from leafcuttr.plugins.authentication import MadeAuthenticator, ServiceAuthentication, make_authenticator
from leafcuttr.runtime.plugin_parts import Failures, Part, PartError, call
from leafcuttr.state.broker import Broker as Core
from leafcuttr.state.plugged import SASL_MECHANISMS
from leafcuttr_sdk.authentication import Authenticated, AuthenticationExchange, Step


def equip_mechanisms(core: Core) -> None:
    """Have the broker know the mechanisms that are named. Raises StartError: no authenticator of a plugin that is on
    has one, or two have it, or it cannot be made."""
    named = dict(_named(core))
    made: dict[str, MadeAuthenticator] = {}
    mechanisms: dict[str, Callable[[], AuthenticationExchange]] = {}
    for mechanism, setting in named.items():
        name = _authenticator_with(core, mechanism, setting)
        if name not in made:
            made[name] = _made(core, name, setting)
        # Each with one that has it alone: `begin` takes the first that has a mechanism.
        of = ServiceAuthentication(("sasl",), [made[name]], core.plugged.failures)
        mechanisms[mechanism] = partial(_Exchange, of, mechanism, made[name].part, core.plugged.failures)
    core.plugged.mechanisms = mechanisms


def _named(core: Core) -> Iterator[tuple[str, str]]:
    """Each mechanism, and the setting that names it: of all listeners, or of one."""
    settings = core.settings
    for setting in settings.given_names:
        if settings.catalog.base_of(setting) == SASL_MECHANISMS:
            for mechanism in settings.list(setting):
                yield mechanism, setting


def _authenticator_with(core: Core, mechanism: str, setting: str) -> str:
    found, known = list[str](), set[str]()
    for name, (_, spec) in core.plugged.authenticators.items():
        known.update(spec.mechanisms)
        if mechanism in spec.mechanisms:
            found.append(name)
    line = f"{setting} ({core.settings.where(setting)}) names {mechanism}, which"
    if not found:
        there = ", ".join(sorted(known)) or "none"
        raise StartError(f"{line} no authenticator of a plugin that is on has; there is {there}")
    if len(found) > 1:
        who = " and ".join(f"{name} of plugin {core.plugged.authenticators[name][0]}" for name in found)
        raise StartError(f"{line} several authenticators have: {who}")
    return found[0]


def _made(core: Core, name: str, setting: str) -> MadeAuthenticator:
    plugin, spec = core.plugged.authenticators[name]
    part = Part(plugin, f"authenticator {name}")
    try:
        return MadeAuthenticator(part, ("sasl",), make_authenticator(part, spec), spec.mechanisms)
    except PluginError as error:
        raise StartError(f"{setting} ({core.settings.where(setting)}): plugin {plugin}: {error}") from None


class _Exchange:
    """`AuthenticationExchange` of the SDK, whose outcome may be asked later without fear."""

    def __init__(self, of: ServiceAuthentication, mechanism: str, part: Part, failures: Failures) -> None:
        self._exchange = of.begin(mechanism)
        self._part = part
        self._failures = failures

    async def step(self, data: bytes) -> Step:
        """See `leafcuttr_sdk.authentication.AuthenticationExchange`."""
        outcome = await self._exchange.step(data)
        if isinstance(outcome, Authenticated) and outcome.still_holds is not None:
            return outcome._replace(still_holds=partial(self._holds, outcome.still_holds))
        return outcome

    def _holds(self, still_holds: Callable[[], bool]) -> bool:
        try:
            return bool(call(self._part, still_holds))
        except PartError as failed:
            self._failures(failed)
            return False

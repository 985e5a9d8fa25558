"""Associations: which subject the keys or values of a resource have, a topic as a rule. A STRONG one belongs to its
resource, is frozen, and goes with it; a WEAK one shares a subject with others. The rules, codes and messages are those
of Confluent's registry.

Longer than other modules because the refusals are one list, in the order in which Confluent's registry finds them.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import uuid4

from leafcuttr_registry.subjects import scopes
from leafcuttr_registry.subjects.events import AssociationKey, AssociationValue, Event
from leafcuttr_registry.subjects.names import beside, normalized
from leafcuttr_registry.subjects.refusals import Refusal, read_only
from leafcuttr_registry.subjects.registering import TENANT, Registration
from leafcuttr_registry.subjects.state import Association, State

STRONG: Final = "STRONG"
WEAK: Final = "WEAK"
LIFECYCLES: Final = (STRONG, WEAK)
TOPIC: Final = "topic"
PARTS: Final = ("key", "value")
ANY: Final = "-"
"""In a path, for all names or all namespaces."""
_LONGEST: Final = 256


@dataclass(slots=True)
class Wanted:
    """One association of a request. What is None is not said."""

    part: str
    subject: str | None
    lifecycle: str | None
    frozen: bool | None
    registration: Registration | None
    normalize: bool


class AssociationRequest(NamedTuple):
    """What a request asks for, about one resource."""

    name: str
    namespace: str
    resource: str | None
    kind: str
    wanted: tuple[Wanted, ...]

    def default_subject(self, part: str) -> str:
        return f":.{self.namespace}:{self.name}-{part}"


class Pending(NamedTuple):
    """One that is to be written, and what is there now."""

    wanted: Wanted
    subject: str
    known: Association | None


def invalid(member: str, why: str) -> Refusal:
    return Refusal(
        42212, f"The association specified an invalid value for property: '{member}', detail: {why}"
    )


def not_there(resource: str) -> Refusal:
    return Refusal(40410, f"Association for '{resource}' not found.")


def frozen(association: Association) -> Refusal:
    key = association.key
    return Refusal(40908, f"The association of type  '{key.part}' is frozen for subject '{key.subject}'")


def read_request(
    body: Mapping[str, Any],
    registration: Callable[[Mapping[str, Any]], Registration],
    *,
    create: bool,
    dry_run: bool,
    resource: str | None = None,
) -> AssociationRequest:
    """`resource` is what the path names. Raises Refusal 42212."""
    name, namespace = _name(body, "resourceName"), _name(body, "resourceNamespace")
    given = _text(body, "resourceId", "resourceId")
    if resource is not None and given not in (None, resource):
        raise invalid(
            "resourceId",
            "Resource ID in the path parameter does not match the resource ID in the request body",
        )
    found = resource or given
    if not found and not dry_run:
        raise invalid("resourceId", "cannot be null or empty")
    kind = _text(body, "resourceType", "resourceType") or TOPIC
    if kind != TOPIC:
        raise invalid("resourceType", f"must be '{TOPIC}'")
    members = body.get("associations")
    if not isinstance(members, list) or not members:
        raise invalid("associations", "cannot be null or empty")
    wanted = tuple(_wanted(each, registration, create=create) for each in members)
    request = AssociationRequest(name, namespace, found or None, kind, wanted)
    parts = [each.part for each in wanted]
    for part in parts:
        if parts.count(part) > 1:
            raise invalid(
                "associationType", f"may only appear once per request, but '{part}' appears more than once"
            )
    return request


def _wanted(
    given: object, registration: Callable[[Mapping[str, Any]], Registration], *, create: bool
) -> Wanted:
    if not isinstance(given, dict):
        raise invalid("associations", "has to be an array of objects")
    part = _text(given, "associationType", "associationType") or "value"
    if part not in PARTS:
        raise invalid("associationType", "must be either 'key' or 'value'")
    subject = _text(given, "subject", "subject")
    if subject is not None and (not subject or not subject.isprintable()):
        raise invalid("subject", "must not be empty")
    lifecycle = _text(given, "lifecycle", "lifecycle")
    if lifecycle is not None and lifecycle not in LIFECYCLES:
        raise invalid("lifecycle", f"must be one of {', '.join(LIFECYCLES)}")
    flags = {name: given.get(name) for name in ("frozen", "normalize")}
    for name, value in flags.items():
        if value is not None and not isinstance(value, bool):
            raise invalid(name, "must be true or false")
    schema = given.get("schema")
    if schema is not None and not isinstance(schema, dict):
        raise invalid("schema", "must be an object")
    found = Wanted(
        part,
        subject,
        lifecycle,
        flags["frozen"],
        None if schema is None else registration(schema),
        flags["normalize"] is True,
    )
    if create:
        _complete(found, create=True)
    if found.lifecycle == WEAK:
        if found.registration is not None:
            raise invalid("lifecycle", "cannot be WEAK when schema is provided")
        if found.frozen:
            raise invalid("frozen", "association with lifecycle of WEAK cannot be frozen")
        if create and subject is None:
            raise invalid("subject", "must be provided for WEAK associations")
    return found


def _complete(wanted: Wanted, *, create: bool) -> None:
    """What a new one has where the request does not say. Raises Refusal 42212."""
    if wanted.registration is not None:
        if not create:
            raise invalid(
                "schema",
                "cannot be provided when adding an association to an existing topic; an association with a schema must "
                "be created with the topic",
            )
        if wanted.lifecycle == WEAK:
            raise invalid("lifecycle", "cannot be WEAK when schema is provided")
        if wanted.frozen is False:
            raise invalid("frozen", "cannot be false when a schema is provided")
        wanted.lifecycle = STRONG
    wanted.lifecycle = wanted.lifecycle or WEAK
    freezes = wanted.lifecycle == STRONG
    if wanted.frozen is not None and wanted.frozen != freezes:
        raise invalid("frozen", _cannot_be_frozen(wanted.lifecycle, wanted.frozen))
    wanted.frozen = freezes


async def decide(
    state: State,
    context: str,
    request: AssociationRequest,
    registered: Callable[[str, Registration, bool], Awaitable[bool]],
    *,
    create: bool,
) -> list[Pending]:
    """What is to be written, without what is there already. `context` is the prefix of subjects that name none;
    `registered` says whether a subject has a schema. Raises Refusal."""
    known = _known(state, request)
    pending: list[Pending] = []
    for wanted in request.wanted:
        found = known.get(wanted.part)
        subject = _subject(state, context, request, wanted, found, create=create)
        lifecycle = _checked_lifecycle(request, wanted, found, subject)
        if found is None:
            await _check_new(state, request, wanted, subject, lifecycle, registered, create=create)
        elif _same(found, wanted, subject):
            given = wanted.registration if create else None
            if given is not None and not await registered(subject, given, wanted.normalize):
                raise _exists(request, wanted)
            continue
        else:
            _check_change(request, wanted, found, subject, create=create)
        pending.append(Pending(wanted, subject, found))
    _check_one_lifecycle(known, request)
    for each in pending:
        _check_subject(state, request, each)
    return pending


def events_for(request: AssociationRequest, pending: Sequence[Pending]) -> list[Event]:
    """Their records."""
    return [Event(*_record(request, each)) for each in pending]


def check_deletion(state: State, association: Association, *, cascade: bool) -> None:
    """Raises Refusal 42205, 40908."""
    _check_writable(state, association.key.subject)
    if association.value.frozen and not cascade:
        raise frozen(association)


def listed(
    state: State,
    *,
    subject: str | None = None,
    resource: str | None = None,
    name: str = ANY,
    namespace: str = ANY,
    kind: str = TOPIC,
    parts: Sequence[str] = (),
    lifecycle: str = "",
) -> list[Association]:
    """Those of a subject, of a resource by its id, or by its name and namespace; in order."""
    found = (
        each
        for each in state.associations.values()
        if (subject is None or each.key.subject == subject)
        and (resource is None or each.value.resource == resource)
        and name in (ANY, each.key.name)
        and namespace in (ANY, each.key.namespace)
        and kind == each.key.kind
        and (not parts or each.key.part in parts)
        and lifecycle in ("", each.value.lifecycle)
    )
    return sorted(found, key=lambda each: (*each.key[1:], each.value.resource))


def _known(state: State, request: AssociationRequest) -> dict[str, Association]:
    """What the resource has, by part. Without an id it is the one of this name that was changed last."""
    if request.resource is not None:
        found = listed(state, resource=request.resource, kind=request.kind)
    else:
        found = listed(state, name=request.name, namespace=request.namespace, kind=request.kind)
        latest = max(found, key=lambda each: (each.updated, each.created, each.value.resource), default=None)
        found = [
            each for each in found if latest is not None and each.value.resource == latest.value.resource
        ]
    return {each.key.part: each for each in found}


def _subject(
    state: State,
    context: str,
    request: AssociationRequest,
    wanted: Wanted,
    known: Association | None,
    *,
    create: bool,
) -> str:
    """Raises Refusal 42205, 42212."""
    if wanted.subject is not None:
        subject = normalized(beside(context, wanted.subject))
        _check_writable(state, subject)
    elif known is not None and not create:
        return known.key.subject
    else:
        if known is None and not create:
            _complete(wanted, create=False)
        if wanted.lifecycle != STRONG:
            raise invalid("subject", "must be provided for WEAK associations")
        return request.default_subject(wanted.part)
    if known is None and not create:
        _complete(wanted, create=False)
    return subject


def _checked_lifecycle(
    request: AssociationRequest, wanted: Wanted, known: Association | None, subject: str
) -> str:
    lifecycle = wanted.lifecycle or (known.value.lifecycle if known is not None else None)
    if lifecycle is None:
        raise invalid("lifecycle", "lifecycle must be set")
    default = request.default_subject(wanted.part)
    if lifecycle == WEAK:
        if wanted.registration is not None:
            raise invalid("lifecycle", "cannot be WEAK when schema is provided")
        if subject == default:
            raise invalid("subject", f"WEAK associations cannot use subject '{default}'")
    is_frozen = known.value.frozen if known is not None else wanted.frozen is True
    asked = wanted.frozen if wanted.frozen is not None else is_frozen
    if asked != (lifecycle == STRONG):
        raise invalid("frozen", _cannot_be_frozen(lifecycle, asked))
    if is_frozen and subject != default:
        raise invalid("subject", f"frozen associations must use subject '{default}'")
    return lifecycle


async def _check_new(
    state: State,
    request: AssociationRequest,
    wanted: Wanted,
    subject: str,
    lifecycle: str,
    registered: Callable[[str, Registration, bool], Awaitable[bool]],
    *,
    create: bool,
) -> None:
    if scopes.mode_of(state, subject) == scopes.IMPORT:
        return  # what is replicated was established elsewhere
    if not create and lifecycle == STRONG:
        raise invalid(
            "lifecycle",
            "cannot be STRONG when creating an association; STRONG associations must be created with the topic",
        )
    if not wanted.frozen:
        return
    if create and wanted.registration is None:
        raise invalid("schema", "schema must be provided when creating a frozen association")
    latest = state.latest(subject)
    if latest is None:
        return
    if (
        wanted.registration is None
        or latest.version != 1
        or not await registered(subject, wanted.registration, wanted.normalize)
    ):
        raise invalid(
            "frozen", "cannot create a frozen association when schemas already exist in the subject"
        )


def _same(known: Association, wanted: Wanted, subject: str) -> bool:
    return (
        known.key.subject == subject
        and wanted.lifecycle in (None, known.value.lifecycle)
        and wanted.frozen in (None, known.value.frozen)
    )


def _check_change(
    request: AssociationRequest, wanted: Wanted, known: Association, subject: str, *, create: bool
) -> None:
    if create:
        raise _exists(request, wanted)
    if wanted.lifecycle is None and wanted.registration is None:
        raise invalid("lifecycle", "at least lifecycle or schema must be provided for update")
    if known.key.subject != subject:
        raise invalid(
            "subject", f"subject of association cannot be changed from '{known.key.subject}' to '{subject}'"
        )
    default = request.default_subject(wanted.part)
    if known.value.lifecycle == STRONG and wanted.lifecycle == WEAK and subject == default:
        raise invalid("lifecycle", f"cannot change to WEAK when subject matches default format '{default}'")
    if wanted.frozen is not None and wanted.frozen != known.value.frozen:
        raise invalid("frozen", "frozen attribute of association cannot be changed")
    if known.value.frozen:
        raise frozen(known)


def _check_one_lifecycle(known: Mapping[str, Association], request: AssociationRequest) -> None:
    """A resource has one for all of its parts."""
    lifecycles = {part: each.value.lifecycle for part, each in known.items()}
    lifecycles |= {each.part: each.lifecycle for each in request.wanted if each.lifecycle is not None}
    if len(set(lifecycles.values())) > 1:
        told = ", ".join(f"{part}={lifecycle}" for part, lifecycle in lifecycles.items())
        raise invalid(
            "lifecycle", f"all associations for a resource must have the same lifecycle, but got {told}"
        )


def _check_subject(state: State, request: AssociationRequest, pending: Pending) -> None:
    """Whether the subject may have it, beside what it has."""
    wanted, subject, known = pending
    if wanted.registration is not None and scopes.mode_of(state, subject) == scopes.IMPORT:
        raise invalid("schema", f"cannot be provided while subject '{subject}' is in IMPORT mode")
    if wanted.registration is None and state.latest(subject) is None:
        raise Refusal(40907, f"No active (non-deleted) version exists for subject '{subject}'")
    others = [
        each
        for each in listed(state, subject=subject, kind=request.kind)
        if known is None or (each.value.resource, each.key.part) != (known.value.resource, known.key.part)
    ]
    if (wanted.lifecycle or (known.value.lifecycle if known is not None else WEAK)) == STRONG:
        if others:
            raise Refusal(40904, f"An association already exists for subject '{subject}'")
        if _is_referenced(state, request, subject):
            raise Refusal(42206, f"One or more references exist to the schema {subject}.")
    elif any(each.value.lifecycle == STRONG for each in others):
        raise Refusal(40905, f"A strong association already exists for subject '{subject}'")


def _is_referenced(state: State, request: AssociationRequest, subject: str) -> bool:
    if any(state.referenced_by(each.key, deleted=True) for each in state.versions(subject, deleted=True)):
        return True
    return any(
        beside(each.subject or request.default_subject(each.part), reference.subject) == subject
        for each in request.wanted
        if each.registration is not None
        for reference in each.registration.references
    )


def _record(request: AssociationRequest, pending: Pending) -> tuple[AssociationKey, AssociationValue]:
    wanted, subject, known = pending
    if known is not None:
        value = known.value._replace(
            lifecycle=wanted.lifecycle or known.value.lifecycle,
            frozen=known.value.frozen if wanted.frozen is None else wanted.frozen,
        )
        return known.key, value
    key = AssociationKey(TENANT, request.name, request.namespace, request.kind, wanted.part, subject)
    return key, AssociationValue(
        str(uuid4()), request.resource or "", wanted.lifecycle or WEAK, wanted.frozen is True
    )


def _exists(request: AssociationRequest, wanted: Wanted) -> Refusal:
    return Refusal(
        40903, f"An association of type '{wanted.part}' already exists for resource '{request.name}'"
    )


def _cannot_be_frozen(lifecycle: str, is_frozen: bool) -> str:
    return f"association with lifecycle of {lifecycle} cannot be frozen={str(is_frozen).lower()}"


def _check_writable(state: State, subject: str) -> None:
    if scopes.is_read_only(state, subject):
        raise read_only(subject, "")


def _name(body: Mapping[str, Any], member: str) -> str:
    name = _text(body, member, member)
    if not name:
        raise invalid(member, "cannot be null or empty")
    if len(name) > _LONGEST:
        raise invalid(member, f"exceeds max length of {_LONGEST}")
    for letter in name:
        if not (letter.isalnum() or letter in "_-"):
            raise invalid(member, f"illegal character '{letter}'")
    return name


def _text(body: Mapping[str, Any], member: str, where: str) -> str | None:
    value = body.get(member)
    if value is not None and not isinstance(value, str):
        raise invalid(where, "must be a text")
    return value

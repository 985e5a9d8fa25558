"""The state, and what events do to it: also any sequence of requests, and the same records once more."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr_registry.subjects import deleting, registering
from leafcuttr_registry.subjects.config import Config
from leafcuttr_registry.subjects.content import Content
from leafcuttr_registry.subjects.events import (
    ClearSubjectKey,
    ConfigKey,
    ContextKey,
    DeletedUpTo,
    DeleteSubjectKey,
    Event,
    ModeKey,
    NoopKey,
    Present,
    SchemaKey,
    SchemaValue,
)
from leafcuttr_registry.subjects.names import context_of
from leafcuttr_registry.subjects.references import resolve
from leafcuttr_registry.subjects.refusals import Refusal
from leafcuttr_registry.subjects.registering import Registration
from leafcuttr_registry.subjects.state import State
from leafcuttr_sdk.schemas import SchemaReference


def schema(subject: str, version: int, id: int, text: str, deleted: bool = False, refers: str = "") -> Event:
    references = (SchemaReference("r", refers, 1),) if refers else ()
    return Event(SchemaKey(subject, version), SchemaValue(id, Content("AVRO", text, references), deleted))


def state_of(*events: Event) -> State:
    state = State()
    for event in events:
        state.apply(event, 5)
    return state


def test_versions_and_ids() -> None:
    state = state_of(schema("a", 1, 1, "x"), schema("a", 2, 2, "y"), schema("b", 1, 1, "x"))
    assert [each.version for each in state.versions("a")] == [1, 2]
    latest = state.latest("a")
    assert latest is not None and (latest.id, latest.timestamp, latest.content.text) == (2, 5, "y")
    entry = state.by_id(".", 1)
    assert entry is not None and set(entry.places) == {SchemaKey("a", 1), SchemaKey("b", 1)}
    assert state.id_of(".", Content("AVRO", "x")) == 1 and state.highest(".") == 2
    assert (
        state.version("a", 1) is not None and state.version("a", 3) is None and state.version("c", 1) is None
    )
    assert state.latest("c") is None and state.by_id(":.c:", 1) is None


def test_versions_that_come_out_of_order_are_in_order() -> None:
    state = state_of(schema("a", 3, 3, "z"), schema("a", 1, 1, "x"), schema("a", 2, 2, "y"))
    assert [each.version for each in state.versions("a")] == [1, 2, 3]
    assert state.latest("a") is state.version("a", 3)


def test_a_deletion_that_is_not_for_good() -> None:
    state = state_of(
        schema("a", 1, 1, "x"), schema("a", 2, 2, "y"), Event(DeleteSubjectKey("a"), DeletedUpTo(1))
    )
    assert [each.version for each in state.versions("a")] == [2]
    assert [each.version for each in state.versions("a", deleted=True)] == [1, 2]
    assert state.by_id(".", 1) is not None
    state.apply(schema("a", 2, 2, "y", deleted=True))
    assert state.latest("a") is None
    assert not state.has("a", deleted=False) and state.has("a", deleted=True)


def test_a_deletion_for_good() -> None:
    state = state_of(schema("a", 1, 1, "x"), schema("b", 1, 1, "x"), schema("a", 2, 2, "y"))
    state.apply(Event(SchemaKey("a", 2), None))
    assert state.by_id(".", 2) is None and state.id_of(".", Content("AVRO", "y")) is None
    assert state.highest(".") == 2 and state.lost_ids == {"."}
    state.apply(Event(SchemaKey("a", 1), None))
    assert "a" not in state.subjects
    entry = state.by_id(".", 1)
    assert entry is not None and set(entry.places) == {SchemaKey("b", 1)}
    state.apply(Event(SchemaKey("a", 9), None))  # what is not there


def test_an_id_has_one_content() -> None:
    state = state_of(schema("a", 1, 1, "x"), schema("b", 1, 1, "other"))
    assert state.conflicts == 1 and "b" not in state.subjects
    state.apply(schema("a", 1, 1, "changed"))  # its only version may change
    version = state.version("a", 1)
    assert version is not None and version.content.text == "changed"
    assert state.id_of(".", Content("AVRO", "x")) is None


def test_one_content_object_for_all_versions_with_an_id() -> None:
    state = state_of(schema("a", 1, 1, "x"), schema("b", 1, 1, "x"))
    one, two = state.version("a", 1), state.version("b", 1)
    assert one is not None and two is not None and one.content is two.content


def test_contexts_have_ids_of_their_own() -> None:
    state = state_of(
        schema("a", 1, 1, "x"), Event(ContextKey("default", ".c"), Present()), schema(":.c:a", 1, 1, "y")
    )
    assert state.conflicts == 0 and state.context_names() == [".", ".c"]
    entry = state.by_id(".c", 1)
    assert entry is not None and entry.content.text == "y"
    state.apply(Event(ContextKey("default", ".c"), None))
    assert state.context_names() == ["."]


def test_references() -> None:
    state = state_of(
        schema("a", 1, 1, "x"), schema("b", 1, 2, "y", refers="a"), schema(":.c:b", 1, 1, "z", refers="a")
    )
    assert [each.subject for each in state.referenced_by(SchemaKey("a", 1), deleted=False)] == ["b"]
    assert [each.subject for each in state.referenced_by(SchemaKey(":.c:a", 1), deleted=False)] == [":.c:b"]
    state.apply(schema("b", 1, 2, "y", deleted=True, refers="a"))
    assert state.referenced_by(SchemaKey("a", 1), deleted=False) == []
    assert len(state.referenced_by(SchemaKey("a", 1), deleted=True)) == 1
    state.apply(Event(SchemaKey("b", 1), None))
    assert (
        state.referenced_by(SchemaKey("a", 1), deleted=True) == []
        and SchemaKey("a", 1) not in state.referrers
    )


def test_what_is_cleared() -> None:
    state = state_of(
        schema("a", 1, 1, "x", deleted=True),
        schema("a", 2, 2, "y"),
        schema(":.c:a", 1, 1, "x", deleted=True),
        Event(ClearSubjectKey("a"), Present()),
    )
    assert [each.version for each in state.versions("a", deleted=True)] == [2]
    assert state.has(":.c:a", deleted=True)
    state.apply(Event(ClearSubjectKey(None), Present()))
    assert not state.has(":.c:a", deleted=True)


def test_config_and_mode_come_and_go() -> None:
    state = state_of(
        Event(ConfigKey("a"), Config({"compatibilityLevel": "FULL"})), Event(ModeKey(None), "READONLY")
    )
    assert state.configs["a"].level == "FULL" and state.modes[None] == "READONLY"
    for key in (ConfigKey("a"), ModeKey(None), ConfigKey("b"), NoopKey(), DeleteSubjectKey("z")):
        state.apply(Event(key, None))
    assert state.configs == {} and state.modes == {}


def test_it_tells_which_ids_have_changed() -> None:
    told: list[tuple[str, int]] = []
    state = State(lambda context, id: told.append((context, id)))
    state.apply(schema("a", 1, 1, "x"))
    state.apply(Event(DeleteSubjectKey("a"), DeletedUpTo(1)))
    state.apply(Event(SchemaKey("a", 1), None))
    assert told == [(".", 1)] * 3


SUBJECTS = st.sampled_from(["a", "b", ":.c:a"])
REQUESTS = st.lists(
    st.one_of(
        st.tuples(
            st.just("register"), SUBJECTS, st.sampled_from(["x", "y", "z"]), st.sampled_from(["", "a"])
        ),
        st.tuples(st.just("delete version"), SUBJECTS, st.integers(-1, 4), st.booleans()),
        st.tuples(st.just("delete subject"), SUBJECTS, st.just(0), st.booleans()),
    ),
    max_size=30,
)


def events_of(state: State, request: tuple[object, ...]) -> list[Event]:
    what, subject, one, two = request
    assert isinstance(subject, str)
    if what == "register":
        references = (SchemaReference("r", str(two), 1),) if two else ()
        resolve(state, subject, references, deleted=False)
        registration = Registration("AVRO", str(one), references)
        content = registration.content(str(one))
        if registering.registered(state, subject, content) is not None:
            return []
        return registering.events_for(state, subject, registration, content)[0]
    permanent = two is True
    if what == "delete version":
        assert isinstance(one, int)
        return deleting.delete_version(state, subject, one, permanent=permanent)[0] if one else []
    return deleting.delete_subject(state, subject, permanent=permanent)[0]


@settings(deadline=None)
@given(requests=REQUESTS)
def test_any_requests(requests: list[tuple[object, ...]]) -> None:
    """Ids count up, none has two contents or is given twice, one content has one id; and the records that are left by
    compaction make the same state."""
    state, log = State(), list[Event]()
    given_ids: dict[tuple[str, int], bytes] = {}
    for request in requests:
        try:
            events = events_of(state, request)
        except Refusal:
            continue
        for event in events:
            state.apply(event)
            log.append(event)
            if isinstance(event.key, SchemaKey) and isinstance(event.value, SchemaValue):
                place = context_of(event.key.subject), event.value.id
                assert given_ids.setdefault(place, event.value.content.digest) == event.value.content.digest
        check(state)
    last = {event.key: number for number, event in enumerate(log)}
    compacted = [event for number, event in enumerate(log) if last[event.key] == number]
    assert told(state_of(*log)) == told(state)
    assert told(state_of(*compacted)) == told(state)


def check(state: State) -> None:
    for context in state.contexts.values():
        assert len(set(context.by_digest.values())) == len(context.by_digest) == len(context.ids)
        for id, entry in context.ids.items():
            assert id <= context.highest and entry.places
            assert all(each.id == id and each.content is entry.content for each in entry.places.values())
    for key, referrers in state.referrers.items():
        assert referrers and state.version(*key) is not None, "a reference leads nowhere"


def told(state: State) -> object:
    return sorted((*each.key, each.id, each.content.text, each.deleted) for each in state.all_versions())


class Watched(dict):  # type: ignore[type-arg]
    """Says when something is gone, as a thread that looks at this moment would see it."""

    lost: bool = False

    def __delitem__(self, key: object) -> None:
        self.lost = True
        super().__delitem__(key)

    def pop(self, *arguments: object) -> object:
        self.lost = True
        return super().pop(*arguments)

    def clear(self) -> None:
        self.lost = True
        super().clear()


def test_what_is_replaced_is_there_at_each_moment() -> None:
    """Threads look up ids, guids and versions while the loop applies a record that is there already, deleted, or with
    other parts: they must not find nothing."""
    content = Content("AVRO", "x")
    for after in (
        schema("a", 1, 1, "x"),
        schema("a", 1, 1, "x", deleted=True),
        Event(SchemaKey("a", 1), SchemaValue(1, content.with_parts({"properties": {}}, None), False)),
    ):
        state = state_of(schema("a", 1, 1, "x"), schema("a", 2, 2, "y"))
        context = state.contexts["."]
        ids, subject = Watched(context.ids), Watched(state.subjects["a"])
        context.ids, state.subjects["a"] = ids, subject  # type: ignore[misc]
        state.apply(after)
        assert not ids.lost and not subject.lost
        assert list(state.subjects["a"]) == [1, 2]
        entry, version = state.by_id(".", 1), state.version("a", 1)
        assert entry is not None and version is not None and entry.places == {version.key: version}
        assert context.by_digest[version.content.digest] == 1
        assert set(context.by_digest.values()) == {1, 2} and len(context.by_digest) == 2
        assert entry.content is version.content  # what the id says is what its only version says


def test_versions_out_of_order_are_there_at_each_moment() -> None:
    state = state_of(schema("a", 3, 3, "z"))
    state.subjects["a"] = versions = Watched(state.subjects["a"])
    state.apply(schema("a", 1, 1, "x"))
    assert not versions.lost and list(state.subjects["a"]) == [1, 3]


def test_a_version_that_gets_another_id_leaves_its_own() -> None:
    state = state_of(schema("a", 1, 1, "x"), schema("b", 1, 2, "y"), schema("a", 1, 2, "y"))
    assert state.by_id(".", 1) is None and "." in state.lost_ids
    entry = state.by_id(".", 2)
    assert entry is not None and set(entry.places) == {SchemaKey("a", 1), SchemaKey("b", 1)}
    assert state.id_of(".", Content("AVRO", "x")) is None
    state = state_of(schema("a", 1, 1, "x"), schema("b", 1, 1, "x"), schema("a", 1, 2, "y"))
    entry = state.by_id(".", 1)
    assert entry is not None and set(entry.places) == {SchemaKey("b", 1)} and not state.lost_ids


def test_references_of_what_is_replaced() -> None:
    state = state_of(schema("c", 1, 1, "c"), schema("a", 1, 2, "x", refers="c"), schema("a", 1, 2, "x"))
    assert state.referrers == {}
    state = state_of(schema("c", 1, 1, "c"), schema("a", 1, 2, "x"), schema("a", 1, 2, "x", refers="c"))
    assert state.referrers == {SchemaKey("c", 1): {SchemaKey("a", 1): None}}


def test_a_content_that_others_have_keeps_its_digest() -> None:
    """One of two versions of an id gets other metadata: the other still has what it had."""
    content = Content("AVRO", "x")
    other = content.with_parts({"properties": {"a": "b"}}, None)
    state = state_of(schema("a", 1, 1, "x"), schema("b", 1, 1, "x"))
    state.apply(Event(SchemaKey("a", 1), SchemaValue(1, other, False)))
    assert state.id_of(".", content) == 1 and state.id_of(".", other) == 1

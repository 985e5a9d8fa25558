"""The members of a group: the leader, static members, and the protocols that all support."""

from leafcuttr.state.groups.events import Protocols, Token
from leafcuttr.state.groups.members import Member, Members


def member(member_id: str, *protocols: str, instance_id: str | None = None) -> Member:
    return Member(
        member_id=member_id,
        instance_id=instance_id,
        client_id="c",
        client_host="/h",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        protocols=tuple((name, name.encode()) for name in protocols or ("range",)),
    )


def members(*all_of_them: Member) -> Members:
    found = Members()
    for each in all_of_them:
        found.add(each)
    return found


def test_the_oldest_member_leads_once_the_leader_has_left() -> None:
    found = members(*map(member, "abc"))
    assert found.leader_id == "a"
    found.leader_id = "c"
    found.remove("a")
    assert found.leader_id == "c"
    found.remove("c")
    assert found.leader_id == "b"
    found.remove("b")
    assert found.leader_id is None and not len(found)


def test_the_protocol_with_most_votes_of_those_that_all_support() -> None:
    found = members(member("a", "x", "y", "z"), member("b", "y", "z"), member("c", "z", "y"))
    assert found.elect_protocol() == "y"
    assert not found.any_supported_by_all(["x"]) and found.any_supported_by_all(["x", "z"])
    found.change_protocols(found.by_id["a"], (("z", b""), ("y", b"")))
    assert found.elect_protocol() == "z"
    found.remove("b")
    found.remove("c")
    found.add(member("d", "y", "z"))
    assert found.elect_protocol() == "z", "of equals, the one that was voted for first"


def test_the_size_of_metadata_is_that_of_the_members_there() -> None:
    found = members(member("a", "x"), member("b", "x", "long"))
    assert found.size == 2 + 2 + 8
    found.change_protocols(found.by_id["a"], (("x", b"12345"),))
    assert found.size == 6 + 2 + 8
    found.remove("b")
    assert found.size == 6
    found.remove("a")
    assert found.size == 0


def test_a_replaced_member_gives_up_its_place() -> None:
    found = members(member("a", instance_id="i"), member("b"))
    old = found.replace("a", member("c", instance_id="i"))
    assert old.member_id == "a"
    assert (found.leader_id, found.by_instance) == ("c", {"i": "c"})
    assert "a" not in found and [each.member_id for each in found] == ["b", "c"]
    found.replace("b", member("d"))
    assert found.leader_id == "c"


def test_a_leader_that_does_not_rejoin_is_replaced_by_the_first_that_has() -> None:
    found = members(*map(member, "abc"))
    assert not found.keep_or_replace_leader()
    found.by_id["b"].joining = found.by_id["c"].joining = Token()
    assert not found.all_waiting_to_join() and found.waiting_to_join() == 2
    assert found.keep_or_replace_leader() and found.leader_id == "b"
    found.by_id["a"].joining = Token()
    assert found.all_waiting_to_join()
    assert found.keep_or_replace_leader() and found.leader_id == "b"


def test_metadata_of_a_protocol() -> None:
    protocols: Protocols = (("range", b"r"), ("sticky", b"s"))
    found = member("a")
    found.protocols = protocols
    assert [found.metadata(name) for name in ("range", "sticky", "other", None)] == [b"r", b"s", b"", b""]

"""Names of principals. The expected ones are what Kafka 4.3's `SslPrincipalMapper` gave for the same rules."""

from __future__ import annotations

import pytest

from leafcuttr.net.principal_rules import NoRuleMatches, PrincipalRules, RulesError, principal_rules

ALICE = "CN=alice,OU=ServiceUsers,O=x"


@pytest.mark.parametrize(
    ("rules", "subject", "name"),
    [
        ("DEFAULT", ALICE, ALICE),
        ("DEFAULT", "", ""),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", ALICE, "alice"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/U", ALICE, "ALICE"),
        ("RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/L", "cn=K1,ou=Dev,dc=a,dc=b", "k1@dev"),
        ("RULE:^CN=other$/x/, RULE:.*CN=([a-z]+).*/$1/,DEFAULT", ALICE, "alice"),
        ("RULE:^CN=other$/x/, DEFAULT", ALICE, ALICE),
        ("  DEFAULT ,\nRULE:.*/x/", ALICE, ALICE),
        (",,RULE:(.*)/<$1>/", "a", "<a><>"),  # every place that matches, the empty end too
        ("RULE:.*/x/", "a", "xx"),
        ("RULE:(.)(.)/$2$1/", "ab", "ba"),
        ("RULE:CN=(.*)/$12/", "CN=a", "a2"),
        ("RULE:CN=(.*)/$1$9/", "CN=a", "a$9"),
        ("RULE:CN=(.*)/$01/", "CN=a", "a"),
        ("RULE:CN=(?<who>[^,]*),.*/${who}/", ALICE, "alice"),
        (r"RULE:CN=(a|b)\/x.*/$1\/y/", "CN=a/x,O=y", "a/y"),
        (r"RULE:CN=(.*)/\$1\\/", "CN=a", "$1\\"),
        ("RULE:(CN)=(.*?)(,OU=(.*))?$/$4-$2/", "CN=a", "-a"),
        ("RULE:(.*)//", "CN=a", ""),
    ],
)
def test_names(rules: str, subject: str, name: str) -> None:
    assert PrincipalRules(rules).name(subject) == name


def test_the_whole_subject_has_to_match() -> None:
    with pytest.raises(NoRuleMatches):
        PrincipalRules("RULE:CN=([a-z]+)/$1/").name(ALICE)


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ("", "there is no rule"),
        (" , ", "there is no rule"),
        ("foo", "'foo' does not begin with DEFAULT or RULE:"),
        ("DEFAULT,RULE:a/b", "'RULE:a/b' does not begin"),
        ("RULE:a/b/X", "does not begin"),
        ("RULE:a/b/LU", "does not begin"),
        ("DEFAULT x", "'DEFAULT x' does not begin"),
        ("RULE:(/b/", "the pattern '('"),
        ("RULE:a/$1/", "the replacement '$1': the pattern has no groups"),
        ("RULE:(a)/${b}/", "the replacement '${b}': the pattern has no group b"),
        ("RULE:(a)/$b/", "the replacement '$b': $ stands before nothing"),
    ],
)
def test_rules_that_could_never_work(rules: str, why: str) -> None:
    with pytest.raises(RulesError) as refused:
        PrincipalRules(rules)
    assert why in str(refused.value)


def test_the_same_rules_are_read_once() -> None:
    assert principal_rules("DEFAULT") is principal_rules("DEFAULT")

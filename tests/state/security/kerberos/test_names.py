"""Short names of principals, by Kafka's rules: its own published cases, and the corners around them."""

from __future__ import annotations

import re

import pytest

from leafcuttr.state.security.kerberos.names import (
    KerberosName,
    KerberosRules,
    KerberosRulesError,
    NoShortName,
    kerberos_rules,
    parse_principal,
)

# Those of Kafka's KerberosNameTest, and what it expects of them.
KAFKAS = [
    r"RULE:[1:$1](App\..*)s/App\.(.*)/$1/g",
    r"RULE:[2:$1](App\..*)s/App\.(.*)/$1/g",
    "DEFAULT",
]
LOWER = [
    r"RULE:[1:$1]/L",
    r"RULE:[2:$1](Test.*)s/ABC///L",
    r"RULE:[2:$1](ABC.*)s/ABC/XYZ/g/L",
    r"RULE:[2:$1](App\..*)s/App\.(.*)/$1/g/L",
    r"RULE:[2:$1]/L",
    "DEFAULT",
]
UPPER = [rule.removesuffix("L") + "U" if rule.endswith("L") else rule for rule in LOWER]


@pytest.mark.parametrize(
    ("rules", "principal", "wanted"),
    [
        (KAFKAS, "App.service-name/example.com@REALM.COM", "service-name"),
        (KAFKAS, "App.service-name@REALM.COM", "service-name"),
        (KAFKAS, "user/host@REALM.COM", "user"),
        (LOWER, "User@REALM.COM", "user"),
        (LOWER, "TestABC/host@FOO.COM", "test"),
        (LOWER, "ABC_User_ABC/host@FOO.COM", "xyz_user_xyz"),
        (LOWER, "App.SERVICE-name/example.com@REALM.COM", "service-name"),
        (LOWER, "User/root@REALM.COM", "user"),
        (UPPER, "User@REALM.COM", "USER"),
        (UPPER, "TestABC/host@FOO.COM", "TEST"),
        (UPPER, "ABC_User_ABC/host@FOO.COM", "XYZ_USER_XYZ"),
        (UPPER, "App.SERVICE-name/example.com@REALM.COM", "SERVICE-NAME"),
        (UPPER, "User/root@REALM.COM", "USER"),
        # The corners.
        (["DEFAULT"], "alice@REALM.COM", "alice"),
        (["DEFAULT"], "alice", "alice"),
        (["RULE:[1:$1.$0]", "DEFAULT"], "alice@A.B", "alice.A.B"),
        (["RULE:[2:$2-$1-$2]"], "a/b@X", "b-a-b"),
        (["RULE:[3:$3]", "DEFAULT"], "a/b@REALM.COM", "a"),
        (["RULE:[1:fixed]"], "alice@X", "fixed"),
        (["RULE:[1:$1](alice)", "RULE:[1:other]"], "alice2@X", "other"),
        (["RULE:[1:$1]s/a/b/"], "aaa@X", "baa"),
        (["RULE:[1:$1]s/a/b/g"], "aaa@X", "bbb"),
        (["RULE:[1:$1]s/(a)(l)/$2$1/"], "alice@X", "laice"),
        (["RULE:[1:$1]s/a/\\$1/"], "a@X", "$1"),
        (["RULE:[1:$1@$0](.*@X)s/@.*//", "DEFAULT"], "alice@X", "alice"),
        (["RULE:[1:$1@$0](.*@X)s/@.*//", "DEFAULT"], "alice@REALM.COM", "alice"),
        (["RULE:[1:$1](a.)"], "ab@X", "ab"),
    ],
)
def test_names(rules: list[str], principal: str, wanted: str) -> None:
    assert KerberosRules(rules).short_name(parse_principal(principal), "REALM.COM") == wanted


@pytest.mark.parametrize(
    ("rules", "principal", "why"),
    [
        (["DEFAULT"], "alice@OTHER", "no rule of sasl.kerberos.principal.to.local.rules is for alice@OTHER"),
        (["DEFAULT"], "a/h@OTHER", "is for a/h@OTHER"),
        (["RULE:[2:$1]"], "alice@REALM.COM", "is for alice@REALM.COM"),
        (["RULE:[1:$1]"], "a/b@REALM.COM", "is for a/b@REALM.COM"),
        (["RULE:[1:$1](ali)"], "alice@REALM.COM", "is for alice@REALM.COM"),
        (["RULE:[1:$1@$0]", "DEFAULT"], "alice@X", "RULE:[1:$1@$0] makes 'alice@X' of 'X' and ['alice']"),
        (["RULE:[2:$1/$2]", "DEFAULT"], "a/b@REALM.COM", "makes 'a/b'"),
        (["RULE:[1:$1]s/.*//"], "alice@X", "makes ''"),
        (["DEFAULT"], "@REALM.COM", "makes ''"),
        (["RULE:[2:$1]"], "WELLKNOWN/ANONYMOUS@WELLKNOWN:ANONYMOUS", "is nobody's name"),
    ],
)
def test_principals_without_a_name(rules: list[str], principal: str, why: str) -> None:
    with pytest.raises(NoShortName, match=re.escape(why)):
        KerberosRules(rules).short_name(parse_principal(principal), "REALM.COM")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("App.service-name/example.com@REALM.COM", ("App.service-name", "example.com", "REALM.COM")),
        ("alice@REALM.COM", ("alice", None, "REALM.COM")),
        ("alice", ("alice", None, None)),
        ("a/@R", ("a", "", "R")),
    ],
)
def test_principals(text: str, wanted: tuple[str, str | None, str | None]) -> None:
    found = parse_principal(text)
    assert found == KerberosName(*wanted)
    assert str(found) == text


@pytest.mark.parametrize("text", ["", "a/b/c@R", "a@b@R", "a@b/c", r"al\/ice@R", r"alice\0@R", "alice\\"])
def test_what_is_no_principal(text: str) -> None:
    with pytest.raises(ValueError, match="is not name@REALM or name/host@REALM"):
        parse_principal(text)


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ([], "there is no rule"),
        (["default"], "'default' is neither DEFAULT nor RULE:"),
        (["RULE:[1:$1", "DEFAULT"], "is neither"),
        (["RULE:[:$1]"], "is neither"),
        (["RULE:[1:$1]s/a/b"], "is neither"),
        (["RULE:[1:$1]/X"], "is neither"),
        (["RULE:[1:$1] DEFAULT"], "is neither"),
        (["DEFAULT/L"], "is neither"),
        (["RULE:[1:$2]"], "$2 is none of $0 to $1"),
        (["RULE:[2:$1$]"], "$ is none of $0 to $2"),
        (["RULE:[1:$1]([)"], "unterminated"),
        (["RULE:[1:$1]s/[/b/"], "unterminated"),
        (["RULE:[1:$1]s/a/$1/"], "the pattern has no groups"),
        (["RULE:[1:$1]s/(a)/$2/"], "the pattern has no group 2"),
    ],
)
def test_rules_that_could_never_work(rules: list[str], why: str) -> None:
    with pytest.raises(KerberosRulesError, match=re.escape(why)):
        KerberosRules(rules)


def test_the_same_rules_are_read_once() -> None:
    assert kerberos_rules(("DEFAULT",)) is kerberos_rules(("DEFAULT",))

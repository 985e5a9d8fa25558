"""Regular expressions of Java, in Python's syntax. `test_java` compares the same cases with Java itself."""

from __future__ import annotations

import re

import pytest

from leafcuttr_forward.mm2.patterns import java_pattern

CASES = [
    ([".*"], ["", "a", "a.b-c_d"], []),
    (["orders", "bills"], ["orders", "bills"], ["order", "ordersx", "orders,bills"]),
    (["orders|bills.*"], ["orders", "bills", "bills-eu"], ["orders-eu"]),
    ([r"a\.b", "c"], ["a.b", "c"], ["axb"]),
    ([r"\Qa.b\E.*"], ["a.b", "a.bc"], ["axb"]),
    ([r"\Qa.b"], ["a.b"], ["axb"]),
    ([r"\p{Alpha}+\p{Digit}"], ["ab1"], ["1", "é1"]),
    ([r"[\p{Lower}\d]+"], ["ab1"], ["A"]),
    ([r"\P{Alpha}+"], ["12"], ["a"]),
    ([r"\p{IsAlphabetic}|\p{Upper}"], None, []),
    ([r"(?i)Orders"], ["ORDERS", "orders"], ["order"]),
    ([r"(?<x>a|b)\k<x>"], ["aa", "bb"], ["ab"]),
    ([r"(a|b)\1"], ["aa"], ["ab"]),
    ([r"(?!__).*"], ["a"], ["__a"]),
    ([r"a++b"], ["aab"], ["b"]),
    ([r"\x41\u0042"], ["AB"], ["ab"]),
    ([r"[a-c&&[b]]"], None, []),
    ([r"[a[b]]"], None, []),
    ([r"\d"], ["1"], ["\u0661"]),
    ([r"\w+"], ["a_1"], ["é"]),
    ([r"a{2,3}"], ["aa", "aaa"], ["a"]),
    ([r"[-.]internal\z"], ["-internal"], ["xinternal"]),
    ([r"\h"], [" "], ["x"]),
    ([r"[^a&&b]"], None, []),
    ([r"[a&b]"], ["&"], ["c"]),
    ([r"("], None, []),
    (["[a"], None, []),
    (["a\\"], None, []),
    (["a(?i)b"], None, []),
    ([r"\R"], None, []),
    ([], [], ["", "a"]),
]


@pytest.mark.parametrize(("expressions", "fitting", "others"), CASES, ids=[str(case[0]) for case in CASES])
def test_what_an_expression_fits(
    expressions: list[str], fitting: list[str] | None, others: list[str]
) -> None:
    if fitting is None:
        with pytest.raises(ValueError, match=r".") as caught:
            java_pattern(expressions)
        assert expressions[0] in str(caught.value) and "\n" not in str(caught.value)
        return
    pattern = re.compile(java_pattern(expressions))
    assert [name for name in fitting if not pattern.fullmatch(name)] == []
    assert [name for name in others if pattern.fullmatch(name)] == []

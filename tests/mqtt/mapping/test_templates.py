import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_mqtt.mapping.templates import parse

VALUES = {"topic": "a/b", "1": "x", "12": "y", "header.unit": "C"}


@pytest.mark.parametrize(
    ("text", "result", "fields"),
    [
        ("", "", ()),
        ("plain", "plain", ()),
        ("{1}", "x", ("1",)),
        ("sensors-{1}", "sensors-x", ("1",)),
        ("{topic}/{12}{1}-{header.unit}", "a/b/yx-C", ("topic", "12", "1", "header.unit")),
        ("{{1}}", "{1}", ()),
        ("{{{1}}}", "{x}", ("1",)),
        ("}}{{", "}{", ()),
    ],
)
def test_fields_get_their_values(text: str, result: str, fields: tuple[str, ...]) -> None:
    template = parse(text, ("topic",), 12, ("header.",))
    assert (template.render(VALUES.__getitem__), template.fields, template.text) == (result, fields, text)
    assert template.fixed == (None if fields else result)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a{", "it has a single {; write {{ for the character"),
        ("a}", "it has a single }; write }} for the character"),
        ("{{}", "it has a single }; write }} for the character"),
        ("{", "it has a single {; write {{ for the character"),
        ("{}", "{} is none of its fields: allowed are {topic}, {header.<name>}, {1} to {2}"),
        ("{3}", "{3} is none of its fields: allowed are {topic}, {header.<name>}, {1} to {2}"),
        ("{0}", "{0} is none of its fields: allowed are {topic}, {header.<name>}, {1} to {2}"),
        ("{01}", "{01} is none of its fields: allowed are {topic}, {header.<name>}, {1} to {2}"),
        ("{-1}", "{-1} is none of its fields: allowed are {topic}, {header.<name>}, {1} to {2}"),
        ("{²}", "{²} is none of its fields: allowed are {topic}, {header.<name>}, {1} to {2}"),
        ("{Topic}", "{Topic} is none of its fields: allowed are {topic}, {header.<name>}, {1} to {2}"),
        ("{header.}", "{header.} is none of its fields: allowed are {topic}, {header.<name>}, {1} to {2}"),
        ("{" + "9" * 5000 + "}", None),
    ],
)
def test_what_is_no_template(text: str, why: str | None) -> None:
    with pytest.raises(ValueError, match=r"none of its|has a single") as raised:
        parse(text, ("topic",), 2, ("header.",))
    assert why is None or str(raised.value) == why


def test_what_is_allowed_is_said_as_it_is() -> None:
    with pytest.raises(ValueError, match=r"^\{1\} is none of its fields: the filter has no \+ and no #$"):
        parse("{1}")
    with pytest.raises(ValueError, match=r"^\{2\} is none of its fields: allowed are \{1\}$"):
        parse("{2}", captures=1)


@given(st.text())
def test_any_text_can_be_written(text: str) -> None:
    template = parse(text.replace("{", "{{").replace("}", "}}"))
    assert template.fixed == template.render(VALUES.__getitem__) == text


@given(st.text(alphabet="{}1a "))
def test_any_text_is_a_template_or_is_refused(text: str) -> None:
    try:
        template = parse(text, captures=1)
    except ValueError as error:
        assert str(error)
    else:
        assert template.render(lambda _: "1") == text.replace("{1}", "1").replace("{{", "{").replace(
            "}}", "}"
        )

"""Contexts in names of subjects, as Confluent's registry has them: `:.ctx:subject` is `subject` in the context `.ctx`;
without one a subject is in the default context `.`. `:*:` stands for all contexts."""

from typing import Final, NamedTuple

DEFAULT: Final = "."
GLOBAL: Final = ".__GLOBAL"
"""A context whose config and mode hold for all contexts that have none."""
ALL: Final = ":*:"
_RESERVED: Final = frozenset({"__GLOBAL", "__EMPTY"})


class SubjectName(NamedTuple):
    """A name in its two parts."""

    context: str
    subject: str

    def __str__(self) -> str:
        return qualified(self.context, self.subject)


def split(name: str) -> SubjectName:
    """The two parts of any name."""
    if name.startswith(":."):
        context, _, subject = name[1:].partition(":")
        return SubjectName(context, subject)
    if name.startswith(ALL):
        return SubjectName("*", name[len(ALL) :])
    return SubjectName(DEFAULT, name)


def qualified(context: str, subject: str) -> str:
    """The name of a subject in a context; the default one has no prefix."""
    return subject if context == DEFAULT else f":{context}:{subject}"


def normalized(name: str) -> str:
    """The one way to write a name: `:.:a` is `a`, `:.ctx` is `:.ctx:`."""
    return str(split(name)) if name.startswith(":") else name


def context_of(name: str | None) -> str:
    """The context of a subject."""
    return split(name).context if name is not None and name.startswith(":") else DEFAULT


def beside(parent: str, name: str) -> str:
    """A name as one in the context of `parent` means it: without a context it is in the same one."""
    found = split(name)
    if found.context == DEFAULT:
        found = SubjectName(context_of(parent), found.subject)
    return str(found)


def prefix_of(context: str) -> str:
    """What subjects of a context begin with, for the context as a path has it (`ctx`, `.ctx`, `:.ctx:`). Raises
    ValueError for one with a colon in it."""
    name = context.removeprefix(":").removesuffix(":")
    if ":" in name:
        raise ValueError(f"Context name '{name}' cannot contain a colon")
    if not name.startswith("."):
        name = f".{name}"
    return "" if name == DEFAULT else f":{name}:"


def is_valid(name: str, *, of_schemas: bool) -> bool:
    """Whether a subject can be called so; one that has schemas is not in the global context."""
    if any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in name):
        return False
    found = split(name)
    if found.subject in _RESERVED:
        return False
    return not (of_schemas and found.context == GLOBAL)


def is_context(name: str | None) -> bool:
    """Whether it stands for a whole context."""
    return name is None or not split(name).subject


def within(name: str | None, subject: str) -> bool:
    """Whether a subject is meant by a name that may be that of a context; None means all."""
    if name is None or name == subject:
        return True
    found = split(name)
    return not found.subject and found.context in (GLOBAL, context_of(subject))

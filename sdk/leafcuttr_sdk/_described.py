"""How things read: what a message calls one; and NamedTuples by `help()`, which shows their fields, each with its own
words, and not the methods of every tuple.

For that a class is made once more, of the same parts, with a metaclass that answers `dir()` and `inspect.signature()`
of the class: that takes a tenth of the time of the first. Instances are as they were. The words of the fields, which
stand below them in the source, are read when somebody looks.
"""

import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

if TYPE_CHECKING:
    import inspect

C = TypeVar("C")

_LONGEST: Final = 100


def kind_of(thing: object) -> str:
    """`a list`, `an int`, `a type`, `None`: for messages on what plugins have returned. What its class says of itself
    is not trusted: it may raise."""
    if thing is None:
        return "None"
    kind = type if issubclass(type(thing), type) else type(thing)
    name: str = type.__dict__["__name__"].__get__(kind)
    return f"{'an' if name.startswith(tuple('aeiouAEIOU')) else 'a'} {name[:_LONGEST]}"


def described(cls: type[C]) -> type[C]:
    """The same NamedTuple, for a decorator."""
    body = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
    return cast("type[C]", _Described(cls.__name__, cls.__bases__, body))


class _Described(type):
    """What a NamedTuple shows of itself."""

    def __dir__(cls) -> list[str]:
        names = [name for name in vars(cls) if not name.startswith("_")]
        for name, text in _words_of_fields(cls).items():
            vars(cls)[name].__doc__ = text
        return [*names, "_replace"]

    @property
    def __signature__(cls) -> "inspect.Signature":
        """Types as the source has them, and no `ForwardRef('...')`."""
        import inspect

        first, *others = inspect.signature(cast(Any, cls).__new__).parameters.values()
        del first
        shown = [
            parameter.replace(annotation=_Text(getattr(parameter.annotation, "__forward_arg__", None)))
            if hasattr(parameter.annotation, "__forward_arg__")
            else parameter
            for parameter in others
        ]
        return inspect.Signature(shown)


_Described.__name__ = "type"
"""Messages of Python, and of whatever asks for `type(thing).__name__`, say so of any class."""


class _Text:
    def __init__(self, text: object) -> None:
        self._text = str(text)

    def __repr__(self) -> str:
        return self._text


def _words_of_fields(cls: type) -> dict[str, str]:
    """What the source says below each field, else the field's type. Nothing where there is no source."""
    import ast
    import inspect

    try:
        tree = ast.parse(inspect.getsource(sys.modules[cls.__module__]))
    except (OSError, KeyError, TypeError):
        return {}
    classes = [one for one in tree.body if isinstance(one, ast.ClassDef) and one.name == cls.__name__]
    body = classes[0].body if classes else []
    found: dict[str, str] = {}
    for field, below in pairwise([*body, ast.Pass()]):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            words = (
                isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and below.value.value
            )
            shown = ast.unparse(field.annotation).strip("'\"")
            found[field.target.id] = inspect.cleandoc(words) if isinstance(words, str) else shown
    return found

"""`python`: a function of a person's as a filter.

The function gets the value, as bytes or None, or the whole record if its first argument is called `record`; and the
`config` of the filter if it has an argument of that name. It answers with true or false, or with a verdict of
`leafcuttr_sdk`. A class is made once, with the config if it takes one, and its `filter` (of a record) or `is_allowed`
(of a value) is called.
"""

import importlib
import importlib.util
import inspect
import json
import re
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from leafcuttr_filters.documents.json_values import CannotFilterError
from leafcuttr_filters.making import Judge
from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.filters import DROP, DeadLetter, Drop, NotReady, Routed, TopicContext, Verdict
from leafcuttr_sdk.records import Record

NAMES: Final = ("filter", "is_allowed", "IsAllowed")
"""What is looked for in a file where no function is named."""
_MODULE: Final = re.compile(r"[A-Za-z_][\w.]*")
_LONGEST: Final = 200


def why_no_target(target: str) -> str | None:
    """Why there can be no such function, as far as that shows without running its code."""
    place, _, name = target.partition(":")
    if place.endswith(".py"):
        return None if Path(place).is_file() else f"path={target}: there is no file {place}"
    if _MODULE.fullmatch(place) is None or not name:
        return f"path={target}: allowed is module:function, or a file as name.py or name.py:function"
    return None


def make_python(context: TopicContext, values: Mapping[str, Any]) -> Judge:
    """Raises PluginError."""
    target: str = values["path"]
    wrong = why_no_target(target)
    if wrong is not None:
        raise PluginError(wrong)
    function = _function(target)
    try:
        judge = _of_records(function, _config(values["config"]))
    except (TypeError, ValueError) as error:
        raise PluginError(f"path={target}: {error}") from None
    return _answering(judge, target)


def _config(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return text


def _function(target: str) -> Callable[..., Any]:
    place, _, name = target.partition(":")
    module = _module(target, place)
    found: Any
    if not name:
        found = next((getattr(module, one) for one in NAMES if hasattr(module, one)), None)
        wanted = f"one of the functions {', '.join(NAMES)}"
    else:
        found = module
        for step in name.split("."):
            found = getattr(found, step, None)
        wanted = f"a function {name}"
    if not callable(found):
        raise PluginError(f"path={target}: {place} has not {wanted}")
    return found  # type: ignore[no-any-return]


def _module(target: str, place: str) -> ModuleType:
    try:
        if not place.endswith(".py"):
            return importlib.import_module(place)
        spec = importlib.util.spec_from_file_location(f"leafcuttr_filters_of_{Path(place).stem}", place)
        if spec is None or spec.loader is None:
            raise PluginError(f"path={target}: {place} cannot be imported")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    except PluginError:
        raise
    except Exception as error:
        raise PluginError(f"path={target}: importing {place} raised {_told(error)}") from error


def _of_records(function: Callable[..., Any], config: Any) -> Callable[[Record], Any]:
    """The function as one of a record. Raises TypeError and ValueError for one that takes something else."""
    if isinstance(function, type):
        return _of_instance(function(config) if _arguments(function) else function())
    names = _arguments(function)
    if not names or len(names) > 2 or (len(names) == 2 and names[1] != "config"):
        raise TypeError("a filter takes a value or a `record`, and may take `config` behind it")
    with_config = len(names) == 2
    if names[0] == "record":
        return (lambda record: function(record, config)) if with_config else function
    if with_config:
        return lambda record: function(record.value, config)
    return lambda record: function(record.value)


def _of_instance(instance: Any) -> Callable[[Record], Any]:
    if callable(getattr(instance, "filter", None)):
        return instance.filter  # type: ignore[no-any-return]
    for name in NAMES[1:]:
        if callable(getattr(instance, name, None)):
            is_allowed = getattr(instance, name)
            return lambda record: is_allowed(record.value)
    raise TypeError("a class of a filter has a method filter or is_allowed")


def _arguments(function: Callable[..., Any]) -> list[str]:
    """The names of those that have to be given."""
    return [
        name
        for name, one in inspect.signature(function).parameters.items()
        if one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]


def _answering(judge: Callable[[Record], Any], target: str) -> Judge:
    def answer(record: Record) -> Verdict:
        try:
            found = judge(record)
        except Exception as error:
            raise CannotFilterError(_told(error)) from error
        if found is record or isinstance(found, Record | Drop | DeadLetter | NotReady | Routed):
            return found
        if found is True:
            return record
        if found is False:
            return DROP
        raise CannotFilterError(
            f"{target} returned {type(found).__name__}, neither true, false nor a verdict"
        )

    return answer


def _told(error: BaseException) -> str:
    """The error in one line, with its place."""
    line = (str(error).splitlines() or [""])[0][:_LONGEST]
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if len(frames) > 1 else ""
    return f"{type(error).__name__}{': ' if line else ''}{line}{place}"

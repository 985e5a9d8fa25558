"""Settings from environment variables, by the rule of Apache's Docker image: `KAFKA_LOG_DIRS` is `log.dirs`.

`_` is `.`, `__` is `_`, `___` is `-`, all in lower case. Only what stands in the last place of a family may be in
mixed case: `KAFKA_LC_FILTERS_Orders` is `lc.filters.Orders`, while `KAFKA_LC_FILTERS_ORDERS` is `lc.filters.orders`, so
that a text all in upper case cannot be given this way, nor one with a `=`.

What the scripts of Kafka read themselves (heap, JMX, logging, where it is installed) is none of ours and is passed over
in silence.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

_PREFIX: Final = "KAFKA_"
_RUN: Final = re.compile(r"_+")
_IGNORED: Final = frozenset(
    {
        "KAFKA_OPTS",
        "KAFKA_HEAP_OPTS",
        "KAFKA_JVM_PERFORMANCE_OPTS",
        "KAFKA_GC_LOG_OPTS",
        "KAFKA_HOME",
        "KAFKA_VERSION",
        "KAFKA_DEBUG",
        "KAFKA_CLASSPATH",
        "KAFKA_URL",
    }
)
_IGNORED_PREFIXES: Final = ("KAFKA_JMX_", "KAFKA_LOG4J_", "KAFKA_JAVA_", "KAFKA_DEBUG_")


def settings_in_environment(
    environ: Mapping[str, str], families: Iterable[str] = ()
) -> Iterator[tuple[str, str, str]]:
    """(setting, value, variable) for every variable that names a setting, in the order of the variables'
    names. `families` are what the names of families begin with.
    """
    for variable in sorted(environ):
        if not variable.startswith(_PREFIX) or variable in _IGNORED or variable.startswith(_IGNORED_PREFIXES):
            continue
        yield setting_name(variable, families), environ[variable], variable


def setting_name(variable: str, families: Iterable[str] = ()) -> str:
    """`KAFKA_A_B__C___D` -> `a.b_c-d`."""
    name = _RUN.sub(_separator, variable.removeprefix(_PREFIX))
    for prefix in families:
        rest = name[len(prefix) :]
        if rest and name[: len(prefix)].lower() == prefix and not rest.isupper():
            return prefix + rest
    return name.lower()


def _separator(run: re.Match[str]) -> str:
    threes, rest = divmod(len(run[0]), 3)
    return "-" * threes + ("", ".", "_")[rest]

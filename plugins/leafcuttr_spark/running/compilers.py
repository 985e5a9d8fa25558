"""Which function compiles which operation."""

from collections.abc import Mapping
from typing import Any, Final

from leafcuttr_spark.running import stateful
from leafcuttr_spark.running.compiling import Compiler
from leafcuttr_spark.running.stateless import columns, functions, graph, transforms

COMPILERS: Final[Mapping[type[Any], Compiler]] = {
    **columns.COMPILERS,
    **graph.COMPILERS,
    **stateful.COMPILERS,
    **functions.COMPILERS,
    **transforms.COMPILERS,
}

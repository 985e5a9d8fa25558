"""Typed accessors over a dictionary of parsed values: one look-up and one check of the type each.

Apart from `settings` because the methods are named after the types they return, which hides those names
inside this class and nowhere else.
"""

import builtins
from collections.abc import Mapping

from leafcuttr.config.setting import Value


class Values:
    """Parsed values by Kafka's name. KeyError for a name no table has, TypeError for the wrong accessor."""

    _values: dict[builtins.str, Value]

    def int(self, name: builtins.str) -> builtins.int:
        """An INT, SHORT or LONG setting that has a value."""
        value = self._values[name]
        if type(value) is not builtins.int:
            raise TypeError(f"{name} is not a whole number: {value!r}")
        return value

    def float(self, name: builtins.str) -> builtins.float:
        """A DOUBLE setting."""
        value = self._values[name]
        if type(value) is not builtins.float:
            raise TypeError(f"{name} is not a number: {value!r}")
        return value

    def bool(self, name: builtins.str) -> builtins.bool:
        """A BOOLEAN setting."""
        value = self._values[name]
        if type(value) is not builtins.bool:
            raise TypeError(f"{name} is not true or false: {value!r}")
        return value

    def str(self, name: builtins.str) -> builtins.str:
        """A STRING, CLASS or PASSWORD setting that has a value."""
        value = self._values[name]
        if type(value) is not builtins.str:
            raise TypeError(f"{name} is not a text: {value!r}")
        return value

    def optional_str(self, name: builtins.str) -> builtins.str | None:
        """A STRING, CLASS or PASSWORD setting that may have no value."""
        return None if self._values[name] is None else self.str(name)

    def list(self, name: builtins.str) -> tuple[builtins.str, ...]:
        """A LIST setting; one without a value reads as empty."""
        value = self._values[name]
        if value is None:
            return ()
        if type(value) is not tuple:
            raise TypeError(f"{name} is not a list: {value!r}")
        return value

    @property
    def values(self) -> Mapping[builtins.str, Value]:
        """All of them. The same object until a change."""
        return self._values

    def value(self, name: builtins.str) -> Value:
        """The typed value of any setting."""
        return self._values[name]

"""What one broker has once, and what many of its parts use."""

import logging
from typing import NamedTuple

from leafcuttr.runtime.complaints import Complaints
from leafcuttr.runtime.descriptors import DescriptorGuard
from leafcuttr.runtime.writers import Writers
from leafcuttr_sdk import Clock


class Runtime(NamedTuple):
    """`writers` are the threads that write for logs, `complaints` those about the broker as a whole."""

    clock: Clock
    descriptors: DescriptorGuard
    writers: Writers
    complaints: Complaints

    @classmethod
    def new(cls, clock: Clock) -> "Runtime":
        return cls(clock, DescriptorGuard(), Writers(), Complaints(logging.getLogger("leafcuttr")))

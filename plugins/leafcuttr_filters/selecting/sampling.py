"""`sample`: a share of the records, or all records of a share of the keys.

Which ones is the same in every instance: by the hash of the key, or by a generator that begins with the same seed. So a
batch that comes again after a failure is another sample, of the same share.
"""

import random
from collections.abc import Mapping
from typing import Any, Final
from zlib import crc32

from leafcuttr_filters.making import Judge
from leafcuttr_sdk.filters import DROP, TopicContext, Verdict
from leafcuttr_sdk.records import Record

_SEED: Final = 0


def make_sample(context: TopicContext, values: Mapping[str, Any]) -> Judge:
    share: float = values["share"]
    if values["by"] == "key":
        below = share * (1 << 32)

        def sample_keys(record: Record) -> Verdict:
            return record if crc32(record.key or b"") < below else DROP

        return sample_keys
    draw = random.Random(_SEED).random

    def sample(record: Record) -> Verdict:
        return record if draw() < share else DROP

    return sample

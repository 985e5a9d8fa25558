"""Which mutants of a module are tried, when there are more than time for them."""

import hashlib
from collections import defaultdict

from mutants.mutation import Mutant


def chosen(mutants: list[Mutant], limit: int, seed: int) -> list[Mutant]:
    """At most `limit` of them: in turn one of every kind, in an order that hangs on the seed and each mutant's own
    text. So a change of one function exchanges few of the others."""
    kinds: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in sorted(mutants, key=lambda mutant: _rank(mutant, seed)):
        kinds[mutant.kind].append(mutant)
    taken: list[Mutant] = []
    while kinds and len(taken) < limit:
        for kind in list(kinds):
            taken.append(kinds[kind].pop(0))
            if not kinds[kind]:
                del kinds[kind]
    return taken[:limit]


def _rank(mutant: Mutant, seed: int) -> str:
    return hashlib.sha256(repr((seed, mutant.key)).encode()).hexdigest()

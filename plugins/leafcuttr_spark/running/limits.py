"""How many dead letters stop a pipeline. Without Spark."""

from collections import deque

from leafcuttr_spark.pipelines.errors import DeadLetterLimitError
from leafcuttr_spark.pipelines.model import DeadLetters


class Limits:
    """Counts the records and dead letters of one run, batch by batch."""

    def __init__(self, letters: DeadLetters | None) -> None:
        self._letters = letters
        self.dead = 0
        """Dead letters of this run."""
        self._last: deque[tuple[int, int]] = deque()
        """Dead letters and records of the last batches, with which there are `window` records."""

    def check(self, dead: int, records: int) -> None:
        """A batch that is to be committed. Raises DeadLetterLimitError where a limit is passed with it: then it must
        not be committed."""
        letters = self._letters
        if letters is None:
            return
        if letters.stop_after is not None and self.dead + dead >= letters.stop_after and dead:
            raise DeadLetterLimitError(
                f"{self.dead + dead} dead letters in this run: stop-after is {letters.stop_after}. The last batch is"
                " not written",
                "dead-letters",
            )
        last = self._with(dead, records, letters.window)
        all_dead, all_records = sum(one for one, _ in last), sum(of for _, of in last)
        whole = max(all_records, letters.window)
        if letters.stop_above is not None and all_dead > letters.stop_above * whole:
            raise DeadLetterLimitError(
                f"{all_dead} of the last {whole} records are dead letters: stop-above is"
                f" {letters.stop_above:.4g}. The last batch is not written",
                "dead-letters",
            )

    def add(self, dead: int, records: int) -> None:
        """A batch that is committed."""
        if self._letters is not None:
            self.dead += dead
            self._last = self._with(dead, records, self._letters.window)

    def _with(self, dead: int, records: int, window: int) -> deque[tuple[int, int]]:
        if not records:
            # Such batches would never fill the window.
            return self._last
        last = deque([*self._last, (dead, records)])
        while len(last) > 1 and sum(of for _, of in last) - last[0][1] >= window:
            last.popleft()
        return last

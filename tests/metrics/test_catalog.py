"""Every metric is declared once, with a name that fits its kind."""

from __future__ import annotations

import pytest

from leafcuttr.metrics import catalog
from leafcuttr.metrics.catalog import METRICS
from leafcuttr_sdk.metrics import counter, gauge, info


def test_names_that_do_not_fit_their_kind() -> None:
    for make, name in ((gauge, "things_total"), (counter, "things"), (info, "things"), (gauge, "Things")):
        with pytest.raises(ValueError, match="is no name for a"):
            make(name, "Things.")
    with pytest.raises(ValueError, match="no sentence"):
        gauge("things", "Things")


def test_the_catalog_is_declared_once() -> None:
    assert len(METRICS) == sum(len(table) for _, table in catalog.THEMES)

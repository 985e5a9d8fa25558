"""With all extras installed and nothing switched on, a start and an idle broker cost what a bare installation costs.

Two virtual environments, with the wheel alone and with the wheel and all its extras; brokers of one and the other in
turn. The processor's time until a broker is ready is compared, and not the time of the clock, because the machine has
other things to do; of each the least, because those can only add to it, and so many starts until that shows. What can
be told without a comparison is told by tests/plugins/test_cost.py.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.installed import Environment

LEAST_ROUNDS, MOST_ROUNDS = 10, 60
MOST = 1.10
_PAGE = os.sysconf("SC_PAGE_SIZE")

pytestmark = pytest.mark.long


def start(environment: Environment, folder: Path) -> tuple[float, float]:
    """Seconds of the processor until the broker was ready, and its resident megabytes then."""
    folder.mkdir()
    with environment.broker(folder, **{"lc.metrics.port": "0"}) as ready:
        process = Path("/proc") / str(ready["pid"])
        seconds = int((process / "schedstat").read_text().split()[0]) / 1e9
        return seconds, int((process / "statm").read_text().split()[1]) * _PAGE / 1e6


def test_within_ten_percent(wheels: dict[str, Path], tmp_path: Path) -> None:
    bare, full = Environment.create(tmp_path / "bare"), Environment.create(tmp_path / "full")
    bare.pip_install(str(wheels["leafcuttr"]))
    full.pip_install(f"{wheels['leafcuttr']}[all]")
    assert "unavailable" in bare.run("leafcuttr", "plugins", "list", cwd=tmp_path)
    assert "unavailable" not in full.run("leafcuttr", "plugins", "list", cwd=tmp_path)
    said = bare.run("leafcuttr", "serve", "-o", "lc.http.proxy.enable=true", cwd=tmp_path, status=1)
    assert said.endswith("mend it with: pip install 'leafcuttr[http]'\n")
    runs: dict[str, list[tuple[float, float]]] = {"bare": [], "full": []}
    for number in range(MOST_ROUNDS):
        runs["bare"].append(start(bare, tmp_path / f"bare-{number}"))
        runs["full"].append(start(full, tmp_path / f"full-{number}"))
        (bare_s, bare_mb), (full_s, full_mb) = (map(min, zip(*each, strict=True)) for each in runs.values())
        within = full_s <= bare_s * MOST and full_mb <= bare_mb * MOST
        if within and number >= LEAST_ROUNDS:
            break
    said = f"bare {bare_s:.3f} s, {bare_mb:.1f} MB; with all extras {full_s:.3f} s, {full_mb:.1f} MB"
    print(said)
    assert within, said

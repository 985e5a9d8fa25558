"""How full a disk may be: the same measure for the disks that a broker reports and for those of this machine."""

from typing import Final

from leafcuttr.cli.doctor.findings import DoctorFinding, fine, problem, warning

_WARNING: Final = 0.75
_PROBLEM: Final = 0.90


def fullness(what: str, free: int, total: int) -> DoctorFinding:
    """How full a disk is, by the thresholds that the alert rules have too."""
    used = 1 - free / total
    seen = f"{what} is {used:.0%} full, {free / 1e9:.1f} GB are free"
    if used < _WARNING:
        return fine(seen)
    kind = problem if used >= _PROBLEM else warning
    return kind(
        seen,
        "On a full disk the broker refuses what producers send.",
        "keep less: leafcuttr configs alter broker --default --set log.retention.bytes=1073741824 "
        "(for each partition), "
        "or log.retention.hours=24",
        "see what uses the space: leafcuttr logdirs",
        "or give log.dirs a larger disk",
    )

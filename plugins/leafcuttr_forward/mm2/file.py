"""The file that `lc.topic.forward.config` names: read, and what there is to say of it."""

from pathlib import Path

from leafcuttr_forward.mm2.plan import MirrorPlan
from leafcuttr_forward.mm2.planning import read_plan
from leafcuttr_forward.mm2.providers import resolver
from leafcuttr_sdk.properties import parse_properties
from leafcuttr_sdk.settings import FindingLevel, SettingFinding


def read_file(path: str) -> tuple[MirrorPlan | None, list[SettingFinding]]:
    """The plan, or None where a finding stops the start."""
    try:
        text = _text(Path(path).read_bytes())
    except OSError as error:
        line = f"{path}: {error.strerror}; allowed is a file of MirrorMaker 2"
        return None, [SettingFinding(FindingLevel.ERROR, line)]
    plan, said = read_plan(text, resolver(parse_properties(text)))
    return plan, [SettingFinding(each.level, each.of(path)) for each in said]


def _text(content: bytes) -> str:
    """Java reads properties as Latin-1; editors write UTF-8."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("latin-1")

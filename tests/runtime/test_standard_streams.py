"""Standard streams that are closed while the process runs. `cli/test_root.py` has those that are closed at its start,
`plugins/test_start.py` the broker whose plugins close them."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import os, sys
from leafcuttr.runtime.standard_streams import is_open, open_closed_streams

print("one")
sys.stdout.flush()
{how}
assert not is_open(sys.stdout)
open_closed_streams()
if is_open(sys.stdout):
    print("two \\udc80")
    sys.stdout.flush()
print(is_open(sys.stdout), is_open(object()), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("how", "out", "err"),
    [
        ("sys.stdout.close()", "one\ntwo \\udc80\n", "True True\n"),
        ("sys.stdout.detach()", "one\ntwo \\udc80\n", "True True\n"),
        ("sys.stdout = None", "one\ntwo \\udc80\n", "True True\n"),
        ("sys.stdout.close(); os.close(1)", "one\n", "False True\n"),
    ],
)
def test_what_was_closed_is_open_again(how: str, out: str, err: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("{how}", how)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, out, err)

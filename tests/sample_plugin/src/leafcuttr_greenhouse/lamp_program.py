"""The program of the lamp: it turns it on, and off when it is told to end."""

import os
import signal
import sys
from types import FrameType


def end(number: int, frame: FrameType | None) -> None:
    print("the lamp is off", flush=True)
    sys.exit(0)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, end)
    print(f"the lamp {os.environ['LAMP']} is on", flush=True)
    while True:
        signal.pause()

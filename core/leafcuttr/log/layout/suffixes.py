"""What the names of files in the folder of a partition end with; the mark of a directory that was shut down cleanly."""

from typing import Final

SUFFIXES: Final = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
"""Of the files of a segment."""
DELETED: Final = ".deleted"
"""Behind another suffix: retention has taken the segment out, and the file goes soon."""
CLEANED: Final = ".cleaned"
"""Behind another suffix: the cleaner is writing it."""
SWAP: Final = ".swap"
"""Behind another suffix: complete, and about to take the place of segments."""
DAMAGED: Final = ".damaged"
"""Behind another suffix: `repair` has set it aside."""
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
"""In the data directory, with Kafka's name."""

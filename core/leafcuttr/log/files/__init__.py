"""Files: open descriptors, atomic replacement, failed syncs, write pressure, free space."""

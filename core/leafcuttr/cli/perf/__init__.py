"""`leafcuttr perf`."""

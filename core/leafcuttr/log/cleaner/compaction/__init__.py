"""What the child process runs: one pass of compaction over the files of a log."""

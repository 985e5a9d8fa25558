"""Reading a log: ranges of batches, offsets by timestamp and epoch, aborted transactions."""

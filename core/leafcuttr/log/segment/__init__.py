"""One segment: the file of batches and its indexes."""

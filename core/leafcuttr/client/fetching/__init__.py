"""Reading record batches from the leaders of partitions: see `reader`."""

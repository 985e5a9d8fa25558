"""Appending record batches at the leaders of partitions: see `appender`."""

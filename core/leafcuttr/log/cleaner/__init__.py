"""Compaction: of the records with one key the last one stays. The broker decides and supervises, a child does the work.

The broker imports `cleaner`, `swap` and `checkpoint`; the child process imports `child` and what that needs, which is
nothing that waits, listens or knows of topics. Between them go the lines that `job` describes.
"""

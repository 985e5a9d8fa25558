"""Compaction: of the records with one key the last one stays. The broker decides and supervises, a child does the work.

The broker imports `cleaner`, `swap` and `checkpoint`; the child process imports `child` and what that needs, which is
neither trio nor anything of topics. They exchange the lines that `job` describes.
"""

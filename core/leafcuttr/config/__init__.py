"""Every setting of the broker and its topics: tables, sources, typed values.

No module here opens a file of the log or a socket; what a setting does is up to the part that reads it.
"""

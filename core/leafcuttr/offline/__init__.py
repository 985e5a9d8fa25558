"""Work on a data directory that no broker uses: verify, repair, adopt, dump. The running broker imports nothing of it.

The rules of the files are `leafcuttr.log`'s; what SQLite holds comes in from the caller.
"""

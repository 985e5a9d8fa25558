"""For people: the command `filters`.

command     `leafcuttr filters list`, `describe` and `test`
samples     records of a file, for `test`
"""

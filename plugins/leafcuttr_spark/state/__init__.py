"""What stateful steps keep for a key and what they give, as plain Python without Spark: `running.stateful` runs it in
tasks.

    `windows`   rows in windows of all four kinds: which are open, which close, which have changed
    `versions`  the rows of a table for one key, each from a time on
    `pairs`     two tables, joined by their key
"""

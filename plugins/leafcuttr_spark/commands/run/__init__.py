"""`leafcuttr spark run`.

`command`    its options
`conduct`    one run, from the file to the exit status
`showing`    what it prints
`stopping`   the signals that end it
"""

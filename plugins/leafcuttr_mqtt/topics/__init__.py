"""Topic names and topic filters, and which subscriptions a topic matches. No I/O.

`names`   what is a name and what a filter; whether one matches the other
`tree`    all subscriptions, and those that a topic matches
`cache`   what was found for recent topics
"""

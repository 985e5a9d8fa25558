"""Records of topics whose keys or values have to have a schema: checked before they are stored.

settings        the topic's settings
specs           what a start asks: names, and which settings imply what
claims          which schema a key or value claims to have, and whether it may
ids             the validators that look at the ids alone
full            the validator and the filter that decode
"""

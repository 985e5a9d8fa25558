"""Whether all values of one schema are values of another, and why not.

`engine` asks and remembers; what it asks is answered keyword by keyword: `own` (types, values, `not`, conditions),
`numbers`, `objects`, `arrays`, `unions`. `model` is what they know of schemas, `disjoint` whether two have no value in
common. All of it is sound, not complete: what is called compatible is; what is not proved is a difference.
"""

"""The language of `lc.record.filter.<name>`: `<type> <option>=<value> ...`.

kinds       kinds of values of options, and how a text is read as one
table       all types with their options: the one place that names them
parsing     a setting's text to a `Definition`
"""

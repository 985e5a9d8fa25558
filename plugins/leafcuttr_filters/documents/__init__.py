"""Keys and values as JSON documents, and fields in them. A document is never changed: another one takes its place.

json_values     JSON in UTF-8, decoded once for a chain
by_schema       the same by schemas of a registry
parts           the part of a record that a filter works on, as a document and back
fields          getting, setting and removing fields
"""

"""Filters that change records, most of them as Kafka Connect's transforms do without schemas.

fields          extract, insert, replace
masking, patterns   mask; e-mail addresses, card and phone numbers in texts
hashing         hash
flattening      flatten
casting, numbers    cast; numbers as Java has them
times, java_times   timestamp; patterns of Java's SimpleDateFormat
routing, replacements    route; replacements with groups as Java has them
headers         headers
texts           values of JSON as text
"""

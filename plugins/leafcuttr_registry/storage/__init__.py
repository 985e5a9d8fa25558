"""The topic `_schemas`, in the format that Confluent's registry writes and reads.

jackson     JSON as that registry writes it
keys, values    records to events, and back
topics      the topics: `_schemas`, and the one that keeps the highest ids
reader      replays it at the start, and follows what anyone appends
writer      appends events, and waits until the reader has come to them
highest     the highest id of each context that was ever given
"""

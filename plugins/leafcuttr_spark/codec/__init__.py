"""Record batches of magic 2 to and from Arrow, many records at a time.

Not in it: the network, Spark, and which records are wanted. It needs numpy and pyarrow.

    `varints`      zigzag varints of whole arrays
    `slices`       many pieces of one buffer as one Arrow array
    `decoding`     batches to columns
    `headers`      the headers of records, both ways
    `encoding`     columns to batches
    `murmur2`      Java's partitioner for whole arrays
    `avro`         values of one Avro schema to columns; no option of the source uses it yet

Where each record begins is found by a loop in Python, because a record says where the next one begins. All else is done
for the records of many batches at once.
"""

"""Reading topics, all but Spark: this part is tested without a JVM.

`options`      the options of the source
`offsets`      positions in partitions, in options and in checkpoints
`cluster`      what the source needs to know of a cluster
`starting`     the offsets that a query begins and ends with
`losses`       what is missing between two positions, and what becomes of that
`admission`    how much of what there is one batch gets
`ranges`       offsets to the parts that tasks read
`reading`      the records of such a part
`rows`         columns to the rows that Spark gets
"""

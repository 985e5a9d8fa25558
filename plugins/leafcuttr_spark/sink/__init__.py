"""Writing topics, all but Spark: this part is tested without a JVM.

    `options`     the options of the sink
    `placing`     which partition each row goes to
    `writing`     rows of a task to batches of its partitions
    `marker`      which micro-batch a transaction has carried

One micro-batch is one transaction. Its owner is the driver; tasks join it. All rows of a partition go to one task,
which numbers them from 0 on, so a second attempt of a task cannot write beside the first: the cluster refuses it, and
the transaction is aborted. The transaction carries the number of the micro-batch as the offset of a group: that a batch
is done is known exactly if its records are there, and it does not matter how its rows are cut when it is repeated.
"""

"""`leafcuttr_sdk.Producer`: records are gathered, and written together.

    receipt     what the sender of a record gets
    unread      failures that nobody has read, counted for the log
    sent        the records of one topic that will be written together
    producer    what the plugin calls, and the task that writes

How records become batches and get into the log is `leafcuttr.plugins.facade.producing`.
"""

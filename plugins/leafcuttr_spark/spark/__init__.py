"""What Spark sees: its classes, which import PySpark.

`datasource`   `format("leafcuttr")`
`peers`        the clusters that a process of Spark has open
`sink`         `TopicSink`, `write_topics`
`listener`     `GroupOffsets`: what a stream has read, as offsets of a group
"""

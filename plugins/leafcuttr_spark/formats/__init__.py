"""Keys and values by a format, without Spark: bytes of records to Arrow's columns, and columns to bytes.

    `options`       what a key or value is: the format, its schema, where its id is
    `types`         types of Arrow as Spark takes them, and Spark's DDL
    `registry`      schemas by their ids, which waits for a registry that is away
    `framing`       ids in front of many values, or in their headers
    `decoding`      what a key or value decodes to, and the errors of those that cannot be decoded
    `encoding`      columns to keys and values, framed with an id
    `pieces`        many values at a time, and one by one where some are bad
    `derived`       schemas for columns that have none
    `avro`, `json`, `protobuf`      the formats

A record that cannot be decoded has an error of one line, and the others of its batch are decoded. Nothing that bytes or
a schema merely claim is allocated.
"""

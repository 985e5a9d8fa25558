"""Records with schemas of the broker's registry (`Broker.schemas`): the formats `avro`, `jsonschema` and `protobuf`.

    types       what the formats are called, and what is said where there is no registry
    shared      the registry for all requests: worker threads, codecs, ids that are not there
    requested   the schemas that a produce request names: registered, or by their ids
    producing   its records: from JSON to what Confluent's serializers write
    claims      which schema a stored key or value names
    decoding    stored records to JSON, for consumers and streams

The formats of the registry decode, in a worker thread.
"""

"""Which messages go to which Kafka topics, and as what records.

    `settings`      what can be set, and what of it is refused at start
    `templates`     texts with fields, as `sensors-{1}`
    `kafka_names`   which names a Kafka topic can have
    `rules`         the mappings, and where a topic goes by them
    `records`       the record of a message, and the message of a record
    `outcomes`      what became of a message
    `targets`       where the messages of a topic go, with what is the same for all of them
    `batches`       batches of a turn in the making
    `contracts`     what stores messages
    `turn`          messages that are stored together
    `writer`        the Kafka topics that they are stored in
    `cluster`       Kafka topics of another cluster
    `producer`      the way there, through librdkafka

All but the last two is without I/O but for creating Kafka topics.
"""

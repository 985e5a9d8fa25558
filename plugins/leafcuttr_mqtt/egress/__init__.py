"""The way down: new records of Kafka topics are published to MQTT subscribers, at least once.

`messages`      the message of a record; no I/O
`filtering`     record filters on the way
`publication`   messages that are published together, until they are where they have to be
`follower`      one Kafka topic, from where it was read to before
"""

"""A small synchronous Kafka client on `leafcuttr.wire`, for requests that librdkafka's admin client does not have.

    with ClusterClient(target) as cluster:
        answer = cluster.send(broker_id, DescribeLogDirsRequest(topics=None))

One request at a time, each connection negotiates versions, plaintext only: no TLS, no SASL. Everything that goes wrong
is a `Failure`, one line for the person. Below it is `channel`, which the doctor uses by itself: there TLS is spoken,
and every kind of failure has a name. It is not for the data path, and prints nothing.
"""

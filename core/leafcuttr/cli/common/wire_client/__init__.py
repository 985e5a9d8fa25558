"""The client of Kafka's protocol as commands use it, for requests that librdkafka's admin client does not have.

    with ClusterClient(target) as cluster:
        answer = cluster.send(broker_id, DescribeLogDirsRequest(topics=None))

One request at a time, over `leafcuttr.client.synchronous`, with TLS and SASL. Everything that goes wrong is a
`Failure`, one line for the person. It is not for the data path, and prints nothing.
"""

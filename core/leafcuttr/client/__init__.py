"""The one client of Kafka's protocol: for commands, for peers of flows, for whatever talks to another cluster.

    async with open_cluster(client_settings({"bootstrap.servers": "hub:9092"})) as cluster:
        metadata = await cluster.metadata(["orders"])

`properties` reads the settings of a client, in Java's names and in librdkafka's, into one frozen value. `protocol` and
`sasl` have no I/O: bytes in, events out. `connection` (one connection) and `cluster` (all brokers of a cluster) run
them on trio, `synchronous` on a blocking socket, for the command line. It works with Kafka 2.1 and later.

The path of a request: `RemoteCluster.request` picks the link to a broker, connects it if need be (back-off, TLS,
versions, authentication), and hands the request to its `ClientConnection`, which has several under way; the response is
read from the frame that it came in. What can go wrong on the way is one family, in `errors`, each with one line for the
person.

`peer` is `leafcuttr_sdk.peers.Peer` on top of it: `calls` and `retrying` repeat what passes by itself; `fetching` reads
whole batches, `producing` appends each of them once and in order, `transactions` several together; `topics`, `offsets`,
`groups` and `claim` are the rest of the contract. What has states is without I/O, in modules that say so.

`blocking` is the same for callers that block, by a loop in a thread of its own; `shared` has the transactions that
several processes write to.
"""

"""Which client is tried in which secured way, and why a combination is missing: the table from which
tests/clients/test_rights.py makes its tests, and the page of clients its columns.

The programs below tests/clients/programs are called as `secured DUTY FILE`. They end with 0 after they have said
`did DUTY: WHAT`; anything else is a failure. The file has lines `NAME=VALUE`: settings of the client (librdkafka's
names for the programs in Go, Node and Rust, Java's for that in Java), and what to do:

    scenario.topic      where it may write and read, scenario.other where it may not; both come into being by themselves
    scenario.group      a group in which it may read
    scenario.seconds    how long `again` goes on
    scenario.token      a bearer token that outlasts the program

The duties:

    rights      Writes the numbers from 0 to 199 to the topic, one by one text, reads them in the group, commits;
                and is refused the other topic because it has not got the right.
    again       Writes a record every 50 ms for so many seconds, with one producer. None may be lost.
    quota       Writes 4 times 40 records of 1000 bytes, and waits for the answer each time. WHAT is the longest time
                in ms for which the client was told to wait.
"""

from __future__ import annotations

from collections.abc import Iterator

COUNT = 200
PAUSE_S = 0.05
TIMES, EACH, SIZE = 4, 40, 1000
SECURITIES = {
    "SSL": "the server's certificate alone; the client is User:ANONYMOUS",
    "MTLS": "mutual TLS: the client's name is in its certificate",
    "PLAIN": "name and password, over TLS, as all that follow",
    "SCRAM-SHA-256": "salted passwords",
    "SCRAM-SHA-512": "the same",
    "OAUTHBEARER": "a token that an issuer has signed",
}
"""In each the client writes and reads in a group what ACLs allow, and is refused another topic."""
AGAIN, QUOTA = "logs in again", "quota"
SECURED_DUTIES = {
    **SECURITIES,
    AGAIN: "by each mechanism: in sessions of three seconds it logs in again on the open connection, and loses nothing",
    QUOTA: "in each way above: it waits as long as its quota says, and loses nothing",
}
CLIENTS = (
    *("confluent-kafka", "kcat", "kafka-python", "aiokafka", "Kafka's Java tools"),
    *("franz-go", "sarama", "Kafka's Java client", "kafkajs", "node-rdkafka", "rdkafka (Rust)"),
)
LACKS: dict[str, dict[str, str]] = {
    "kcat": {
        "OAUTHBEARER": "Debian's librdkafka is built without libcurl, and kcat takes a token from nowhere else",
        AGAIN: "librdkafka 2.0.2 does not know of sessions: kcat gives up when the broker closes its connection",
    },
    "aiokafka": {AGAIN: "it does not know of sessions; it opens another connection, and loses nothing"},
}
GIVES_UP = ("kcat",)
"""Those that do not go on when their session ends; what else lacks it opens another connection, and is tried."""
SILENT = {
    "kcat": "it prints no such time",
    "aiokafka": "it knows of no quotas: the broker does not read what it sends meanwhile",
}
"""Those that do not say how long they were told to wait; the broker says it instead."""
ELSEWHERE = {
    **dict.fromkeys(
        ("Spark", "Kafka Connect", "Kafka Streams"),
        "SCRAM-SHA-256 over TLS, with [the rights that it needs](../how-to/acls.md) and without each of them; the "
        "other ways are those of Kafka's Java client",
    ),
    "Kafka's TransactionalMessageCopier": "not tried: it connects by Kafka's Java client, which is",
}
"""Clients of the page that have no row here."""


def ways(client: str) -> Iterator[str]:
    """The securities in which this client is tried."""
    return (one for one in SECURITIES if one not in LACKS.get(client, {}))


def mechanism(security: str) -> str | None:
    """The mechanism of SASL, if this is one."""
    return None if security in ("SSL", "MTLS") else security

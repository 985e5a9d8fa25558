"""Metrics of requests and connections. Their values are read in `leafcuttr.server.admin.read_requests`."""

from leafcuttr_sdk.metrics import counter, gauge, histogram

REQUESTS = counter(
    "kafka_network_requestmetrics_requests_total",
    "Requests that were handled, by API.",
    "request",
)
REQUEST_SECONDS = histogram(
    "kafka_network_requestmetrics_totaltime_seconds",
    "Time from the arrival of a request until its answer was ready to leave, by API. It includes intended waits (long "
    "polls of Fetch, rebalances in JoinGroup). Requests without an answer (acks=0) are not in it.",
    "request",
)
ERRORS = counter(
    "kafka_network_requestmetrics_errors_total",
    "Error codes in answers, by API: each place of an answer that carries one counts.",
    "request",
    "error",
)
MALFORMED = counter(
    "leafcuttr_malformed_requests_total",
    "Connections that the broker closed because of what came over them: no request of Kafka's protocol, one that is "
    "too large, or one that failed with acks=0.",
)
CONNECTIONS = gauge(
    "kafka_server_socketservermetrics_connections",
    "Connections that are open, by listener.",
    "listener",
)
CONNECTIONS_ACCEPTED = counter(
    "kafka_server_socketservermetrics_connection_creation_total",
    "Connections that were accepted since the broker started, by listener.",
    "listener",
)
CONNECTIONS_REFUSED = counter(
    "leafcuttr_connections_refused_total",
    "Connections that were closed at once because their address had too many (max.connections.per.ip), by listener.",
    "listener",
)
ACCEPT_PAUSES = counter(
    "leafcuttr_accept_pauses_total",
    "How often the broker stopped accepting connections, because of max.connections or of the limit of open files.",
)
LOGINS = counter(
    "kafka_server_socketservermetrics_successful_authentication_total",
    "First log-ins of connections that have succeeded, by listener.",
    "listener",
)
LOGINS_FAILED = counter(
    "kafka_server_socketservermetrics_failed_authentication_total",
    "Connections that were closed before they were served, because their handshake of TLS or their log-in failed or "
    "took too long, by listener.",
    "listener",
)
LOGINS_AGAIN = counter(
    "kafka_server_socketservermetrics_successful_reauthentication_total",
    "Later log-ins on the same connection that have succeeded (KIP-368), by listener.",
    "listener",
)
LOGINS_AGAIN_FAILED = counter(
    "kafka_server_socketservermetrics_failed_reauthentication_total",
    "Later log-ins that have failed, by listener; the connection is closed.",
    "listener",
)
SESSIONS_OVER = counter(
    "leafcuttr_expired_sessions_total",
    "Connections that were closed because they were used after the end of their session, by listener.",
    "listener",
)
CERTIFICATE_REMAINING = gauge(
    "leafcuttr_certificate_remaining_seconds",
    "Seconds until a certificate that a listener shows expires, those of its issuers too, by listener and subject. "
    "86,400 are a day; below 0 it has expired.",
    "listener",
    "subject",
)
LONG_POLLS = gauge(
    "leafcuttr_waiting_fetches",
    "Fetch requests that wait for records now.",
)
FETCH_SESSIONS = gauge(
    "kafka_server_fetchsessioncache_numincrementalfetchsessions",
    "Fetch sessions that the broker remembers (KIP-227).",
)
REQUEST_MEMORY = gauge(
    "leafcuttr_request_memory_bytes",
    "Bytes of large requests that are under way, as queued.max.request.bytes counts them.",
)
REQUEST_MEMORY_WAITS = counter(
    "leafcuttr_request_memory_waits_total",
    "How often a connection was not read for a while because of queued.max.request.bytes.",
)
THROTTLE_SECONDS = histogram(
    "leafcuttr_throttle_seconds",
    "For how long clients were held back by a quota, by quota: what answers said (KIP-219), and for "
    "connection_creation_rate how long connections were held.",
    "quota",
)
THROTTLED_CONNECTIONS = gauge(
    "leafcuttr_throttled_connections",
    "Connections that are not read now because their client is above a quota.",
)
HELD_CONNECTIONS = gauge(
    "leafcuttr_held_connections",
    "Connections that are not served yet because their address has opened too many (connection_creation_rate).",
)

METRICS = (
    REQUESTS,
    REQUEST_SECONDS,
    ERRORS,
    MALFORMED,
    CONNECTIONS,
    CONNECTIONS_ACCEPTED,
    CONNECTIONS_REFUSED,
    ACCEPT_PAUSES,
    LOGINS,
    LOGINS_FAILED,
    LOGINS_AGAIN,
    LOGINS_AGAIN_FAILED,
    SESSIONS_OVER,
    CERTIFICATE_REMAINING,
    LONG_POLLS,
    FETCH_SESSIONS,
    REQUEST_MEMORY,
    REQUEST_MEMORY_WAITS,
    THROTTLE_SECONDS,
    THROTTLED_CONNECTIONS,
    HELD_CONNECTIONS,
)

"""Metrics of plugins: what became of them, their services, listeners, filters and validators. What plugins add is in
`added`."""

from leafcuttr_sdk.metrics import counter, gauge, info

PLUGIN = info(
    "leafcuttr_plugin_info",
    "Plugins that are installed: state is enabled, off, disabled, unavailable or failed.",
    "plugin",
    "version",
    "state",
)
UP = gauge(
    "leafcuttr_plugin_service_up",
    "1 while a service of a plugin serves, 0 while it starts, or pauses after a failure.",
    "plugin",
    "service",
)
RESTARTS = counter(
    "leafcuttr_plugin_service_restarts_total",
    "How often a service of a plugin has been started again after a failure.",
    "plugin",
    "service",
)
BLOCKS = counter(
    "leafcuttr_plugin_service_blocks_total",
    "How often a service of a plugin has held the event loop for over a tenth of a second.",
    "plugin",
    "service",
)

CHILD_UP = gauge(
    "leafcuttr_plugin_child_up",
    "1 while a program that a plugin runs beside the broker runs, 0 while it starts, pauses after it has ended, or is "
    "done.",
    "plugin",
    "child",
)
CHILD_RESTARTS = counter(
    "leafcuttr_plugin_child_restarts_total",
    "How often a program that a plugin runs has been started again after it had ended.",
    "plugin",
    "child",
)
CHILD_MEMORY = gauge(
    "leafcuttr_plugin_child_memory_bytes",
    "Memory of a program that a plugin runs, and of all that it has started, in bytes, some seconds ago at most.",
    "plugin",
    "child",
)

SERVED = gauge(
    "leafcuttr_plugin_connections",
    "Connections that are open, by listener of a plugin (the prefix of its settings) that the broker serves.",
    "plugin",
    "listener",
)
SERVED_ACCEPTED = counter(
    "leafcuttr_plugin_connections_accepted_total",
    "Connections to listeners of plugins that were accepted, without those that were refused.",
    "plugin",
    "listener",
)
SERVED_REFUSED = counter(
    "leafcuttr_plugin_connections_refused_total",
    "Connections to listeners of plugins that were closed at once because too many were open "
    "(<prefix>.max.connections).",
    "plugin",
    "listener",
)
SERVED_ENDED = counter(
    "leafcuttr_plugin_connections_ended_total",
    "Connections to listeners of plugins that have ended: end is closed (as it should), reset, idle, slow (the client "
    "took nothing), handshake (it took too long), tls (it failed), cut (the handler went on after the stop) or failed "
    "(the handler did).",
    "plugin",
    "listener",
    "end",
)
SERVED_PAUSES = counter(
    "leafcuttr_plugin_accept_pauses_total",
    "How often a listener of a plugin stopped accepting connections, because of the limit of open files.",
    "plugin",
    "listener",
)

FILTERED = counter(
    "leafcuttr_filter_records_total",
    "Records of stored batches by what a record filter did to them: verdict is kept, changed, dropped or dead_letter.",
    "topic",
    "filter",
    "verdict",
)
FILTER_FAILURES = counter(
    "leafcuttr_filter_failures_total",
    "Batches that were refused because a record filter failed.",
    "topic",
    "filter",
)
FILTER_NOT_READY = counter(
    "leafcuttr_filter_not_ready_total",
    "Batches that were refused for now because a record filter was not ready to judge them.",
    "topic",
    "filter",
)
VALIDATED = counter(
    "leafcuttr_validator_records_total",
    "Records that a produce validator checked: verdict is accepted (of stored batches) or refused.",
    "topic",
    "validator",
    "verdict",
)
VALIDATOR_FAILURES = counter(
    "leafcuttr_validator_failures_total",
    "Batches that were refused because a produce validator failed.",
    "topic",
    "validator",
)
VALIDATOR_NOT_READY = counter(
    "leafcuttr_validator_not_ready_total",
    "Batches that were refused for now because a produce validator was not ready to judge them.",
    "topic",
    "validator",
)
DEAD_LETTERS = counter(
    "leafcuttr_dead_letters_total",
    "Records that filters sent to a dead-letter topic and that were written there.",
    "topic",
)
DEAD_LETTERS_LOST = counter(
    "leafcuttr_dead_letters_lost_total",
    "Records that filters sent to a dead-letter topic and that could not be written there.",
    "topic",
)

METRICS = (
    PLUGIN,
    UP,
    RESTARTS,
    BLOCKS,
    CHILD_UP,
    CHILD_RESTARTS,
    CHILD_MEMORY,
    SERVED,
    SERVED_ACCEPTED,
    SERVED_REFUSED,
    SERVED_ENDED,
    SERVED_PAUSES,
    FILTERED,
    FILTER_FAILURES,
    FILTER_NOT_READY,
    VALIDATED,
    VALIDATOR_FAILURES,
    VALIDATOR_NOT_READY,
    DEAD_LETTERS,
    DEAD_LETTERS_LOST,
)

"""Metrics of plugins' services. What plugins themselves add is in `added`."""

from leafcuttr_sdk.metrics import counter, gauge

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

METRICS = (UP, RESTARTS, BLOCKS)

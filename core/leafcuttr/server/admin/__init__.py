"""The admin endpoint: metrics and health over HTTP, on an address of its own. It reads the broker and changes nothing.

Nothing in here is imported before somebody asks that costs time or memory to import: h11 with the first connection,
prometheus_client with the first scrape."""

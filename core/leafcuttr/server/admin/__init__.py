"""The admin endpoint: metrics and health over HTTP, on an address of its own. It reads the broker and changes nothing.

What costs time or memory is imported when it is first needed: h11 with the first connection,
prometheus_client with the first scrape, TLS where the port has a certificate."""

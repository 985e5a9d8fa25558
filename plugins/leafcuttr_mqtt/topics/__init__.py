"""Topic names and topic filters, and which subscriptions a topic matches. No I/O."""

"""Who may log in, and how much a client may have: users and quotas. No I/O but that of `state.metadata`."""

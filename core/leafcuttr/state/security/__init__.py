"""Who may log in: users and their credentials. No I/O but that of `state.metadata`."""

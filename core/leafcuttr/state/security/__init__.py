"""Who may log in, and how much a client may have: users, delegation tokens, tokens of others, quotas.

No I/O but that of `state.metadata`, and of `bearer.key_source`, which fetches keys.
"""

"""Who may log in, and how much a client may have: users, delegation tokens, tokens of others, quotas.

No I/O but that of `state.metadata`, and of `bearer.key_source`, which fetches keys.
"""

from typing import Final

AUDIT_LOGGER: Final = "leafcuttr.audit"
"""Whose lines are the audit log (`audit`). It stands here because formatters of a broker without one know it too."""

"""One line for a trouble that lasts, however often it is met: a full disk refuses every write of every client.

What is told apart is the caller's choice of key: usually the reason, not the partition that met it.
"""

from leafcuttr_sdk.trouble import Complaints

__all__ = ["Complaints"]

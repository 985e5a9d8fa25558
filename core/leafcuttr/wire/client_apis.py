"""APIs that our own client sends to other brokers, and that this broker does not answer itself.

What it answers is in `api`; an API that it learns to answer moves there.
"""

from enum import IntEnum

from leafcuttr.wire.api import Api


class ClientApiKey(IntEnum):
    """Kafka's names of these API keys."""

    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49


def _api(key: ClientApiKey, name: str, last: int, flexible: int) -> Api:
    return Api(key, name, 0, last, flexible, key.name.lower(), 0)


CLIENT_APIS: dict[int, Api] = {
    api.key: api
    for api in (
        _api(ClientApiKey.DESCRIBE_CLIENT_QUOTAS, "DescribeClientQuotas", 1, 1),
        _api(ClientApiKey.ALTER_CLIENT_QUOTAS, "AlterClientQuotas", 1, 1),
    )
}
"""Each such API, by key."""

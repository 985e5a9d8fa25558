"""The reference page of API keys, made from the table of APIs: `python -m leafcuttr.wire.reference` prints it.

A test compares the page in the documentation with it. What an API does is the first sentence of its module.
"""

import importlib
import sys

from leafcuttr.wire.api import APIS, Api

_HEAD = """\
# API keys

<!-- Written by `python -m leafcuttr.wire.reference`; a test fails when this page and the code differ. -->

The requests that LeafCuttr answers, with the versions it serves: for each of them those of Apache Kafka 4.3. From the
version in the last but one column on, a message has compact lengths and tagged fields
([KIP-482](https://cwiki.apache.org/confluence/display/KAFKA/KIP-482%3A+The+Kafka+Protocol+should+Support+Optional+Tagged+Fields)).

| Key | API | Versions | Flexible from | What it does |
|----:|-----|----------|---------------|--------------|
"""

_TAIL = """
ApiVersions names exactly these, with one exception: of Produce it says {produce}, because librdkafka looks for version
0 there (KAFKA-18659). A request of Produce 0 to 2 closes the connection, as does any key or version that is not in the
table; Apache Kafka does the same. Only ApiVersions itself is always answered: to a version that is too new with error
35 (UNSUPPORTED_VERSION) and its own versions, in a body of version 0.
"""


def api_keys_page() -> str:
    """The whole page, in Markdown."""
    produce = next(api for api in APIS.values() if api.advertised_min_version != api.min_version)
    advertised = _range(produce.advertised_min_version, produce.max_version)
    return _HEAD + "".join(map(_row, APIS.values())) + _TAIL.format(produce=advertised)


def _row(api: Api) -> str:
    flexible = str(api.first_flexible_version) if api.first_flexible_version <= api.max_version else "never"
    module = importlib.import_module(f"leafcuttr.wire.messages.{api.module}")
    summary = (module.__doc__ or "").split("\n\n")[0].replace("\n", " ")
    versions = _range(api.min_version, api.max_version)
    return f"| {api.key:d} | {api.name} | {versions} | {flexible} | {summary} |\n"


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"


if __name__ == "__main__":
    sys.stdout.write(api_keys_page())

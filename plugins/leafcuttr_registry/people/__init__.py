"""The registry for people: the command `leafcuttr schemas`, and the formats of `consume`, `produce` and `perf produce`.
They ask any registry with Confluent's API over HTTP, and none of them is imported by a broker.

`metrics` is what a broker shows of its own registry.
"""

"""Consumers of REST proxy API v2: instances that outlive a request, each a member of a consumer group in the broker.

routes, pages    the endpoints, and what the OpenAPI document says of them
request_bodies   JSON in, checked values out. Pure
configuration    of a new consumer: its settings, Kafka's among them (kafka_settings). Pure
rendering        records as JSON. Pure
instance         one consumer between its requests: reading, committing, what was handed out
registry         all of them: created, found, let go when idle or when the proxy stops
"""

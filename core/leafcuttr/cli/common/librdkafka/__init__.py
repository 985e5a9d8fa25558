"""Clients of librdkafka: made, and used as the operator's commands need them."""

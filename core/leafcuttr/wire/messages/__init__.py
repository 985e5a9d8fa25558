"""One module per API, imported when the API is first used, with its request, its response and their parts.

Names are those of Kafka's message definitions, fields in snake case. Where Kafka uses one name for different
structs in a request and its response, the request's have the prefix Request. Nothing but declarations lives
here.
"""

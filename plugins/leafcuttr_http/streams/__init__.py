"""A topic as a stream: server-sent events and WebSockets on `GET /topics/{topic}/stream`.

    query        what a request says: from where, in which format, which keys
    beginning    opens a stream: the offsets where it begins
    positions    where a stream is in each partition, and the id that says so
    events       records as JSON, encoded once for all streams that get them
    hub          reads a topic at its end, once for all streams that are there
    subscription one stream: on its own while it is behind, then at a hub
    sse, websocket   the two protocols
    streams      what all of them share: hubs, limits, the stop
    pages        what the OpenAPI document says of them

The log is the buffer: a stream whose client is slow leaves its hub and reads from the log by itself, at its client's
pace, until it has caught up. So a client costs at most a few pieces of the log, however slow it is.
"""

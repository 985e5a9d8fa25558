"""The state of a session and the protocol of a connection: packets in, packets and events out. No I/O and no clock.

`states`        the tables of states, and the theory behind them
`conversation`  one connection: what may come, what the server says by itself
`events`        what it tells the broker
`answers`       reasons and CONNACK, by version and by what the client wants
`payloads`      payloads that say what format they have
`session`       what is kept of a client
`inbound`       what a client has under way to the server
`outbound`      what is under way to it: packet identifiers, the window, what is sent next and again
`waiting`       what waits for that, and its bounds
`backlog`       the middle of a long queue, which is in the log
`aliases`       topic aliases in both directions
`sizes`         how long a packet is
`limits`        what both sides grant
`types`         subscriptions, deliveries
"""

"""Bridges to other MQTT brokers, as those of mosquitto: `mqtt.bridge.<name>.*`.

names       what settings of bridges are called
settings    what can be set, as it is declared at each start
options     how the options are read, and each bridge as the code uses it
topics      which messages go over a bridge, and under which names
relay       the packets of both sides, one to the other; no I/O
local       the side of this broker: a stream that ends in the same process
tls         the TLS of a client
link        one connection to the other broker, and beside it one to this one
bridges     all bridges for as long as the service runs: attempts, their pauses, notifications

How it works: a bridge is a client of both brokers, and nothing more. What is to go out waits in its session here, which
is in the log as any session that outlives its connection; what is to come in waits in its session there. The bridge
gives PUBLISH packets of one side to the other, with the packet identifiers that they have, and the acknowledgements
back. So it has no state that it could lose: a message is acknowledged to one broker when the other has acknowledged it,
with QoS 2 exactly once, and after a break both sides send again what they have no acknowledgement for.
"""

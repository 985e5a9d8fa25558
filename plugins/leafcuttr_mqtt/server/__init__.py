"""The MQTT broker as a service: listeners, connections, authentication, keep alive.

service         the listeners, and the order in which all of it ends
running         what the connections of one start share, and what runs beside them
connection      the life of a connection: how it begins and ends
states          its states and those of a read, as tables
reading         what its task does: packets are read, a client is let in
admission       whether it is let in
authentication  who it is
contract        what `admission` sees of a connection
taking          from the packets of a read to what is stored
read            a read, answered in the order of its packets
answers         what is answered to each kind of packet
verdicts        what becomes of messages with QoS 2, and of those that are refused
held            reads whose messages cannot be stored for now
publishable     which topics clients may publish to
outgoing        what goes out on a connection, once a turn
slow_writer     what waits for a client that does not take it at once
sending         PUBLISH packets to subscribers as bytes
keep_alive      clients that are silent
"""

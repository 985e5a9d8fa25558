"""MQTT's control packets as bytes and as objects: 3.1 (`MQIsdp`), 3.1.1 and 5.0. No I/O.

types       a class for each packet; the version; reason codes
reader      from the bytes of a connection to packets: framing and PUBLISH
table       which first bytes a packet may have, by version and sender
bodies      what clients send, but for PUBLISH: from the body to the object
answers     what only servers send, likewise
fields      the data types of 1.5, read
properties  the properties of 5.0: which exist, of which type, in which packets; read and written
reasons     which reason codes a packet may have
writer      from packets to bytes
frames      bytes made for many at once: PUBLISH for fan-out, runs of acknowledgements
encoding    the data types of 1.5, written
refusals    what is said before a connection is closed for a `PacketError`
errors      what is wrong with bytes that are no packet
"""

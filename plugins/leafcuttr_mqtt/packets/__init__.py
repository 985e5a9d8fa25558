"""MQTT's control packets as bytes and as objects: 3.1 (`MQIsdp`), 3.1.1 and 5.0. No I/O.

types       a class for each packet; the version; reason codes
properties  the properties of 5.0: which exist, of which type, in which packets
reader      from bytes to packets
writer      from packets to bytes
errors      what is wrong with bytes that are no packet
"""

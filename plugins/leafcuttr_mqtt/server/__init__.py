"""The MQTT broker as a service: listeners, connections, authentication, keep alive."""

"""The checks of a broker as clients on this machine see it."""

"""Sockets and tasks: listeners, connections, background loops, the nursery tree, shutdown."""

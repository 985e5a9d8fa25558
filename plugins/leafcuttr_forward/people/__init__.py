"""Flows for people: in the broker its health, metrics and paths of the admin port; and what commands share.

current     the flows that run in a broker
rows        a flow as JSON
metrics     what is counted of flows
admin       paths of the admin port, and the health check
endpoint    the HTTP address of a command that runs flows: the same paths, and metrics
exposition  metrics as text
"""

"""What people see of the MQTT broker, and how they act on it.

current     the broker that runs, for the hooks below
counts      what is counted while it runs
rows        clients, sessions, retained messages and mappings as plain data
admin       paths of the admin port, and the health check
metrics     for Prometheus
sys_topics  `$SYS/broker/...`
client      a small client that blocks, for the commands
command     `leafcuttr mqtt`, a module for each of its commands
"""

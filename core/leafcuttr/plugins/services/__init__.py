"""Services of plugins, and their supervision: `supervisor` starts and stops all of them in order, `service` is the
life of one, `order` what needs what, `backoff` the pauses, `watchdog` finds those that hold the loop."""

"""Tests of the MQTT broker. A package, and not a folder only: `tests/bench/mqtt.py` would be found in its place."""

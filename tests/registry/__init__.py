"""Tests of the registry. A package, and not a folder only: `tests/bench/registry.py` would be found in its place."""

"""Tests of the plugin `spark`."""

"""The chain of a topic: its produce validators and record filters."""

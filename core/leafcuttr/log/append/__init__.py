"""The write path: from a produced batch to published records."""

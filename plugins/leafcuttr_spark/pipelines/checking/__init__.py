"""What can be known of a pipeline before it runs."""

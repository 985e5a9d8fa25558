"""What a start does with each partition."""

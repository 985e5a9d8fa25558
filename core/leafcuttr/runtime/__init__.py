"""What many parts of the broker use and none of them owns."""

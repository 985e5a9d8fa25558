"""`leafcuttr repair`."""

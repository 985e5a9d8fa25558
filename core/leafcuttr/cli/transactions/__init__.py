"""`leafcuttr transactions`."""

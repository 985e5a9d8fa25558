"""`leafcuttr dump`."""

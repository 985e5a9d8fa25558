"""`leafcuttr groups`."""

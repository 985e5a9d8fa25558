"""`leafcuttr consume`."""

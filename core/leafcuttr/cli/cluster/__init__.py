"""`leafcuttr cluster`."""

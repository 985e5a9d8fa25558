"""`leafcuttr demo`."""

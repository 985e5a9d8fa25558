"""`leafcuttr produce`."""

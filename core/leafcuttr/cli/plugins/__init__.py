"""`leafcuttr plugins`."""

"""`leafcuttr verify`."""

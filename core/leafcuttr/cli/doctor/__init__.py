"""`leafcuttr doctor`."""

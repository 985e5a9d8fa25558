"""`leafcuttr serve`."""

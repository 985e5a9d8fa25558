"""`leafcuttr completion`."""

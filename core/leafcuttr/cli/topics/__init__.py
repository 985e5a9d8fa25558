"""`leafcuttr topics`."""

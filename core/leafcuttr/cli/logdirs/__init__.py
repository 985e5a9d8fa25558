"""`leafcuttr logdirs`."""

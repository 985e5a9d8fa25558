"""`leafcuttr configs`: settings and quotas in a running cluster."""

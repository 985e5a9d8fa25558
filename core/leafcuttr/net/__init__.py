"""What the listeners of the broker and of plugins share: `binding` of addresses, `tls`. Nothing is accepted here."""

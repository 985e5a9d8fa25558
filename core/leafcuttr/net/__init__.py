"""What every listener shares, whoever it belongs to: `binding` of addresses, `tls`. Nothing is accepted here."""

"""What the broker measures: each metric declared once (`catalog`), and the plain numbers that the data path counts in
(`counts`). Values are read at a scrape, in `leafcuttr.server.admin`; nothing else imports prometheus_client."""

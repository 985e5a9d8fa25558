"""What the broker measures: each metric declared once (`catalog`), and the plain numbers that the data path counts in
(`counts`). What they come to is read when somebody asks, in `leafcuttr.server.admin`. prometheus_client is not here."""

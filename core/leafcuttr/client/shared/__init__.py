"""Transactions that several processes write to: `owner` begins and ends them, `joined` writes to one, `written` says
how much of it is in the partitions."""

"""What outlives a connection or the process: sessions, queued and retained messages, wills, in internal topics."""

"""`Broker.serve`: connections of clients to plugins. `server` accepts them and ends them, `stream` and `tls_stream` are
what handlers get, `ends` counts how connections end and says so, `limits` has the settings."""

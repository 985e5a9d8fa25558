"""Records as text: their formats, lines of JSON, lines of input, and their way to a broker."""

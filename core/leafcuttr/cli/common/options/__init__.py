"""Arguments and options that several commands have, and the types of their values."""

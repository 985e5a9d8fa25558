"""What the commands share. Nothing in it knows a command."""

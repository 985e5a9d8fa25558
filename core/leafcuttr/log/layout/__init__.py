"""What lies in a data directory beside the segments: names of folders, checkpoints, the state file."""

"""What is done to logs in the background: syncs, checkpoints, removal of files."""

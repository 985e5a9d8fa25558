"""The checks of a configuration on the machine where it is to run."""

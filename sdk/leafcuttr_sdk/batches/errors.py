"""What is wrong with the bytes of a batch."""


class BatchError(ValueError):
    """The bytes are no record batch, or not a whole one, or say what cannot be. The text says which, and where."""

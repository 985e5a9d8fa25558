"""What the tables of states share: of groups, transactional ids and connections."""


class TransitionError(AssertionError):
    """A state machine tried a move that its table does not have: a mistake in the broker, never a client's."""

"""What `Broker.run_in_worker` raises beside what the function itself raises: one type for each way in which a call can
fail. Each says in one line which function it was, and why."""


class WorkerError(Exception):
    """A call of `Broker.run_in_worker` has failed, in one of the ways below."""


class WorkerDeadlineError(WorkerError):
    """It took longer than `deadline_s`. Its process has been ended."""


class WorkerMemoryError(WorkerError):
    """It needed more than `memory_bytes`, or its result is larger than that. Its process has been ended."""


class WorkerDiedError(WorkerError):
    """Its process has ended by itself (`os._exit`, a crash of a library, a signal), could not be started, or was ended
    because the broker stopped."""


class WorkerTransferError(WorkerError):
    """The function, an argument or the result cannot go from one process to another: the function is not one that a
    module has under its name, its module cannot be imported in another process, or something cannot be pickled."""


class WorkerRaisedError(WorkerError):
    """The function has raised what cannot be pickled, or what is for its process alone, as SystemExit: the message is
    the type and the text of that."""

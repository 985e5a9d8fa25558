"""What the operating system lets one process have."""

import resource


def raise_descriptor_limit() -> int:
    """Raise the soft limit of open files to the hard one, which needs no privilege. Returns the limit in force."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            return soft
    return hard

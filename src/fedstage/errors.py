"""The exception that a user is meant to read."""


class FedstageError(Exception):
    """A fault of the user's configuration or data, told in one line.

    The message names the key or file, the value found there, and what is allowed.
    Anything else that is raised is a bug, whose traceback is kept, in the log of the job.
    """


class UncountedClients(FedstageError):
    """How many clients an experiment has is only in data that cannot be read."""

"""The one exception for mistakes that a user can mend."""


class UserError(Exception):
    """A mistake in the input: one clear sentence that says what is wrong, where, and what to do.

    The command line prints the sentence once, on rank 0, without a traceback, and exits with code 2. Everything else
    that is raised is a fault of the program.
    """

"""The one exception that stands for a user's mistake."""


class UserError(Exception):
    """What was wrong, where, and what to do, in one line. The command line prints it and exits with code 2."""

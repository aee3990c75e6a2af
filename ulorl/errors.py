"""The one exception that stands for a user's mistake."""


class UserError(Exception):
    """What was wrong, where, and what to do, in one line. The command line prints it and exits with code 2."""


class ReportedError(UserError):
    """What another process of the same run has said already; this one ends silently."""

"""The one exception that stands for a user's mistake, and the system's errors that are one."""

import errno

MENDED_BY_USERS = frozenset(
    {
        *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EEXIST, errno.ENOTEMPTY),
        *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG),
    }
)
"""Of paths that are not there, are something else or may not be used, and of disks."""


class UserError(Exception):
    """What was wrong, where, and what to do, in one line. The command line prints it and exits with code 2."""


class ReportedError(UserError):
    """What another process of the same run has said already; this one ends silently."""

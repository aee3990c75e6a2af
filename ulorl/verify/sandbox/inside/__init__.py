"""The side of the border where programs run. Nothing but the standard library, Python 3.10 or later.

`keeper` is one worker process. It never runs a program: for each one it starts a *box* (`box`), a process that locks
itself in (`namespaces`, `landlock`, `seccomp`, `limits`) and only then becomes the program (`program`), a program whose
functions are tested (`served`), or its tests (`assertions`); `supervise` watches it and ends it.
"""

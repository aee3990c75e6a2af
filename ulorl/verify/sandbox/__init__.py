"""Runs hostile Python programs: processes that can do nothing but compute, and a pool of them.

`inside` is what runs on the other side of the border, with nothing but the standard library; the other modules are the
caller's side and never execute, parse or unpickle what comes from there.
"""

"""reasoning-gym behind the task ``logic``: making puzzles, keeping them in files, scoring answers in workers."""

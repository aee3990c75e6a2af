"""Tasks: what turns a problem and a response into a reward, by the problem's ``task`` column."""

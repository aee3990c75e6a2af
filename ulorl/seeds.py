"""Seeds that follow from names: independent streams for every (stage, problem, sample, segment)."""

from __future__ import annotations

import hashlib


def derive_seed(seed: int, *names: str | int) -> int:
    """A seed in [0, 2**31) that depends on the run's seed and on every name, in order."""
    text = "\x1f".join(str(part) for part in (seed, *names))
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:4], "big") >> 1

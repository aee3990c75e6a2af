"""Canonical forms of expressions, exact arithmetic, and high-precision values."""

"""Verifiable constraints on a response, under the names of IFEval (Zhou et al. 2023, arXiv 2311.07911)."""

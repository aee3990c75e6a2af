"""Whole files of answers: reading, rates, explanations."""

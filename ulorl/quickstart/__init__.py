"""The embedded default: generated problems, a byte-level tokenizer, a small base model; no download."""

from __future__ import annotations

from pathlib import Path

MODEL_DIR = Path(__file__).parent / "model"
"""Hugging Face directory of the shipped base model."""

"""The settings of ``ulorl verify train``."""

from __future__ import annotations

from pydantic import Field

from ulorl.recipe import Section


class JudgeTraining(Section):
    """Everything that determines a judge."""

    model: str
    """Any Hugging Face causal language model: directory or hub name."""
    inputs: tuple[str, ...] = ()
    """Problems with references, as in `data.inputs`: their references are rewritten into pairs."""
    evaluate: tuple[str, ...] = ()
    """Labelled files that the judge is measured on; their pairs and problems are never trained on."""
    pairs: int = Field(default=20_000, ge=1)
    """Pairs to train on."""
    epochs: int = Field(default=1, ge=1)
    """Passes over them."""
    batch_size: int = Field(default=32, ge=1)
    """Pairs an update."""
    lr: float = Field(default=1e-4, gt=0)
    """Peak learning rate of AdamW, after a rise over 3 % of the updates; then it falls linearly."""
    train_layers: int = Field(default=0, ge=0)
    """Train only this many of the last layers; 0 trains everything."""
    bfloat16: bool = False
    """Compute in bfloat16 (the weights that are written stay float32)."""
    checkpoint_every: int = Field(default=50, ge=1)
    """Updates between checkpoints."""
    threads: int = Field(default=0, ge=0)
    """CPU threads; 0 takes OMP_NUM_THREADS, else every core the process may use."""
    seed: int = Field(default=0, ge=0, lt=2**31)
    """Seed of pairs, order and initialisation."""

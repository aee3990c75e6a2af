"""Make the quickstart's base model: supervised warm-up, measurement, and the files the package ships.

    python scripts/warmup_quickstart.py                  # train, measure, write ulorl/quickstart/model/
    python scripts/warmup_quickstart.py --scale 0.02 --output trial

One thread. The same seed gives the same weights on the same kind of machine (bfloat16 matrix products differ
between processor kinds). An interrupted run goes on from its last checkpoint, beside the output directory.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from dataclasses import replace
from pathlib import Path

import torch

from ulorl.quickstart import MODEL_DIR
from ulorl.quickstart.measure import sample, summary
from ulorl.quickstart.problems import generate_problems
from ulorl.quickstart.tokenizer import build_tokenizer
from ulorl.quickstart.warmup import POOL, WarmupSettings, start, train


def main() -> None:
    """Parse, train, measure, write."""
    defaults = WarmupSettings()
    parser = argparse.ArgumentParser(description="Make the quickstart's base model.")
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the updates of every stage")
    parser.add_argument("--seed", type=int, default=defaults.seed)
    parser.add_argument("--output", type=Path, default=MODEL_DIR)
    parser.add_argument("--problems", type=int, default=96, help="test problems to measure on")
    parser.add_argument("--samples", type=int, default=32, help="samples a problem")
    parser.add_argument("--checkpoint-every", type=int, default=50)
    options = parser.parse_args()
    torch.set_num_threads(1)

    stages = tuple(
        replace(stage, updates=max(1, round(stage.updates * options.scale / POOL)) * POOL) for stage in defaults.stages
    )
    settings = replace(defaults, stages=stages, seed=options.seed)
    tokenizer = build_tokenizer()
    run = start(len(tokenizer), settings)
    checkpoint = options.output.with_name(options.output.name + ".checkpoint.pt")
    if checkpoint.exists():
        run.load_state_dict(torch.load(checkpoint, weights_only=True))
        print(f"going on from update {run.step} of {checkpoint}")
    began, losses = time.perf_counter(), []
    for loss in train(run, tokenizer, settings):
        losses.append(loss)
        if run.step % 20 == 0:
            print(
                f"update {run.step}/{settings.updates}  loss {sum(losses) / len(losses):.4f}  "
                f"{time.perf_counter() - began:.0f} s",
                flush=True,
            )
            losses.clear()
        if run.step % options.checkpoint_every == 0:
            written = checkpoint.with_suffix(".new")
            torch.save(run.state_dict(), written)
            written.replace(checkpoint)

    partial = options.output.with_name(options.output.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    run.model.generation_config.update(eos_token_id=1, pad_token_id=0)
    run.model.save_pretrained(partial)
    tokenizer.save_pretrained(partial)
    for path in partial.iterdir():
        path.chmod(0o644)  # safetensors writes files that only their owner can read
    shutil.rmtree(options.output, ignore_errors=True)
    partial.rename(options.output)
    checkpoint.unlink(missing_ok=True)

    rows = generate_problems("test", options.problems, settings.seed)
    print(json.dumps(summary(sample(run.model, tokenizer, rows, options.samples)), indent=1))


if __name__ == "__main__":
    main()

"""Against TRL's GRPOTrainer: samples a second and reward, on the same model, problems, rewards and sample counts.

    python benchmarks/against_trl.py --seeds 0 1 2

The contestants take turns, each run in a process of its own with one thread; seconds are of the processor. All have
the quickstart's model in float32, its curated problems, 24 prompts x 8 samples a step, one update a step, at most 384
tokens, temperature 1, the same verifier, AdamW with the same constant learning rate, gradient clipping, GRPO
advantages and DAPO's token-level loss over all groups, no KL, no masks. ulorl decodes in 4 segments, or in 1. TRL
generates with transformers, and is given what makes it fast here: one batch (``--micro``), no gradient checkpointing,
no bf16 autocast (both are its defaults). ``--trl`` names how it generates, separated by commas: `transformers`,
`continuous` (transformers' continuous batching), `vllm` (in its process, `vllm_mode="colocate"`). Prints a Markdown
table and writes docs/evidence/against_trl.svg. Speed leaves out the first steps, in which caches and the pool are
filled.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from training_runs import (
    Options,
    Rows,
    curated,
    curve,
    environment,
    first_mean,
    last_mean,
    metrics,
    options,
    spread,
    ulorl_train,
    write_plot,
)

from ulorl.report.plot import Figure

LEFT_OUT = 4
PROMPTS, GROUP, MAX_TOKENS, LR = 24, 8, 384, 2e-4
GENERATION: dict[str, dict[str, Any]] = {
    "transformers": {},
    "continuous": {"use_transformers_continuous_batching": True},
    "vllm": {"use_vllm": True, "vllm_mode": "colocate", "vllm_max_model_length": 160 + MAX_TOKENS},
}
SEGMENTS = {"ulorl": 4, "ulorl, 1 segment": 1}


def train_with_trl(problems: Path, directory: Path, *, steps: int, seed: int, generation: str, micro: int) -> None:
    """One run of GRPOTrainer; writes metrics.jsonl with the names of `ulorl train`."""
    import torch
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    from ulorl.engine.prompts import resolve_model
    from ulorl.recipe import VerifyRecipe
    from ulorl.rows import read_problem_table
    from ulorl.verify import Item, Verifier

    torch.set_num_threads(1)
    model_dir = str(resolve_model("quickstart"))
    verifier = Verifier(VerifyRecipe())
    rows = [
        {"prompt": f"{one.problem}\n", "answer": one.answer, "problem": one.problem}
        for one in read_problem_table(problems / "problems.parquet")
    ]

    def reward(completions: list[str], answer: list[str], problem: list[str], **_: Any) -> list[float]:
        items = [Item(*row) for row in zip(answer, completions, problem, strict=True)]
        return [float(bool(verdict.equivalent)) for verdict in verifier.verify(items)]

    directory.mkdir(parents=True, exist_ok=True)
    rows_of_steps: list[dict[str, float]] = []

    class Record(TrainerCallback):  # type: ignore[misc]
        """One line a step under the names of `ulorl train`; its time is all from the end of the step before."""

        def on_train_begin(self, *_: Any, **__: Any) -> None:
            self.last = time.process_time()

        def on_log(self, _: Any, state: Any, __: Any, logs: dict[str, float] | None = None, **___: Any) -> None:
            if logs is None or "reward" not in logs:
                return
            now = time.process_time()
            rows_of_steps.append(
                {
                    "step": state.global_step,
                    "reward/mean": logs["reward"],
                    "entropy/mean": logs["entropy"],
                    "length/mean": logs["completions/mean_length"],
                    "objective/samples": PROMPTS * GROUP,
                    "time/step_s": now - self.last,
                }
            )
            self.last = now
            (directory / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows_of_steps))

    settings: dict[str, Any] = dict(
        output_dir=str(directory / "trl"),
        max_steps=steps,
        seed=seed,
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=PROMPTS * GROUP // micro,
        num_generations=GROUP,
        max_completion_length=MAX_TOKENS,
        temperature=1.0,
        learning_rate=LR,
        lr_scheduler_type="constant",
        warmup_steps=0,
        max_grad_norm=1.0,
        weight_decay=0.0,
        beta=0.0,
        loss_type="dapo",
        scale_rewards="group",
        epsilon=0.2,
        bf16=False,
        gradient_checkpointing=False,
        use_cpu=True,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        dataloader_num_workers=0,
    )
    settings |= GENERATION[generation]
    model = AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.float32)
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=reward,
        args=GRPOConfig(**settings),
        train_dataset=Dataset.from_list(rows),
        processing_class=AutoTokenizer.from_pretrained(model_dir),
        callbacks=[Record()],
    )
    trainer.train()


def trl_run(given: Options, seed: int, generation: str) -> Path:
    """`train_with_trl` in a process of its own, unless it is there."""
    micro: int = given.parsed.micro
    directory = given.runs / f"trl-{generation}-micro-{micro}-steps-{given.steps}-seed{seed}"
    if not (directory / "done").exists():
        directory.mkdir(parents=True, exist_ok=True)
        print(f"{directory.name} ...", file=sys.stderr, flush=True)
        command = [sys.executable, __file__, "--one", str(directory), "--seeds", str(seed)]
        command += ["--runs", str(given.runs), "--steps", str(given.steps), "--micro", str(micro), "--trl", generation]
        done = subprocess.run(
            command,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(f"{directory}\n{done.stderr[-4000:]}")
        (directory / "done").touch()
    return directory


def ulorl_run(given: Options, seed: int, segments: int) -> Path:
    """`ulorl train` with the settings that TRL has too."""
    settings = {
        "steps": given.steps,
        "checkpoint_every": 1000,
        "rollout.prompts_per_step": PROMPTS,
        "rollout.group_size": GROUP,
        "rollout.max_tokens": MAX_TOKENS,
        "rollout.segments": segments,
        "rollout.temperature": 1.0,
        "rollout.dynamic_sampling": "off",
        "objective.mastered": "never",
        "learner.lr": LR,
    }
    directory = given.runs / f"ulorl-segments-{segments}-steps-{given.steps}-seed{seed}"
    ulorl_train(directory, curated(given.runs, seed), settings, seed, processor_time=True)
    return directory


def samples_per_s(rows: Rows) -> float:
    """Trained samples a second of the steps after the first ones."""
    rows = [row for row in rows if row["step"] > LEFT_OUT]
    return sum(row.get("objective/samples", 0.0) for row in rows) / sum(row["time/step_s"] for row in rows)


def main() -> None:
    extra = [("micro", int, PROMPTS * GROUP), ("trl", str, "transformers"), ("one", Path, None)]
    given = options(__doc__, steps=14, extra=extra)
    generations: list[str] = given.parsed.trl.split(",")
    seed, micro = given.seeds[0], given.parsed.micro
    if given.parsed.one:
        problems, steps = curated(given.runs, seed), given.steps
        return train_with_trl(
            problems, given.parsed.one, steps=steps, seed=seed, generation=generations[0], micro=micro
        )
    runs: dict[str, list[Path]] = {}
    for seed in given.seeds:
        for label, segments in SEGMENTS.items():
            runs.setdefault(label, []).append(ulorl_run(given, seed, segments))
        for generation in generations:
            label = "TRL" if generation == "transformers" else f"TRL, {generation}"
            runs.setdefault(label, []).append(trl_run(given, seed, generation))
    found = {label: metrics(directories) for label, directories in runs.items()}
    print("\n".join(table(found)))
    curves = [curve(label, slot, seeds, "reward/mean", width=3) for slot, (label, seeds) in enumerate(found.items(), 1)]
    title = "Reward of training samples: ulorl and TRL"
    write_plot(given, Figure("against_trl", title, curves=curves, unit="mean reward, mean of 3 steps"))


def table(found: dict[str, list[Rows]]) -> list[str]:
    """The Markdown table; the ratio is within a seed, ulorl's samples a second over the contestant's."""
    lines = [
        "| trainer | samples a second | ulorl is times as fast | seconds a step | reward, first 3 steps "
        "| reward, last quarter | mean length, last quarter |",
        "|---|---|---|---|---|---|---|",
    ]
    base = [samples_per_s(rows) for rows in found["ulorl"]]
    for label, seeds in found.items():
        speeds = [samples_per_s(rows) for rows in seeds]
        ratios = [one / other for one, other in zip(base, speeds, strict=True)]
        seconds = [statistics.fmean(row["time/step_s"] for row in rows if row["step"] > LEFT_OUT) for rows in seeds]
        lines.append(
            f"| {label} | {spread(speeds, '.1f')} | {spread(ratios, '.2f')} | {spread(seconds, '.1f')} "
            f"| {spread([first_mean(rows, 'reward/mean') for rows in seeds], '.2f')} "
            f"| {spread([last_mean(rows, 'reward/mean') for rows in seeds], '.2f')} "
            f"| {spread([last_mean(rows, 'length/mean') for rows in seeds], '.0f')} |"
        )
    return lines


if __name__ == "__main__":
    main()

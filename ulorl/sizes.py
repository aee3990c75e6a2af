"""Sizes that follow from a recipe: what ``--dry-run`` shows, so that nobody has to guess which batch is
which.

Pure arithmetic: nothing is read, loaded or measured. Bounds are called so; memory is that of the tensors
named in the formula, without activations, fragmentation or the framework's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from ulorl.model_shape import ModelShape
from ulorl.recipe import Recipe
from ulorl.recipe_schedule import changes, phases
from ulorl.recipe_validation import MOST_HELD_OUT

_ADAM_BYTES = 8
_MASTER_BYTES = 4
_FP32_BYTES = 4
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True)
class Size:
    """One derived number, with the formula it comes from in the recipe's names."""

    stage: str
    name: str
    value: int
    unit: str
    formula: str


def derived_sizes(recipe: Recipe, shape: ModelShape | None, processes: int = 1) -> list[Size]:
    """All sizes of a run on ``processes`` devices; those of the model only when its shape is known."""
    sizes = [*_curate(recipe), *_train(recipe), *_evaluate(recipe)]
    return sizes + (_memory(recipe, shape, processes) if shape else [])


def sizes_dict(sizes: Iterable[Size]) -> list[dict[str, Any]]:
    """The sizes for ``--json``."""
    return [asdict(size) for size in sizes]


def render_sizes(sizes: Iterable[Size]) -> str:
    """The sizes for people: one line each, aligned, with the formula."""
    rows = [(size.stage, size.name, human(size.value, size.unit), size.formula) for size in sizes]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        f"{stage:<{widths[0]}}  {name:<{widths[1]}}  {value:>{widths[2]}}  = {formula}"
        for stage, name, value, formula in rows
    )


def human(value: int, unit: str) -> str:
    """A number with its unit; bytes in binary multiples."""
    if unit != "bytes":
        return f"{value:,} {unit}"
    scaled, power = float(value), 0
    while scaled >= 1024 and power < len(_UNITS) - 1:
        scaled, power = scaled / 1024, power + 1
    return f"{scaled:.4g} {_UNITS[power]}" if power else f"{value} B"


def _generated_count(source: str) -> int | None:
    """How many problems a source holds, when its name says so."""
    prefix, _, count = source.partition(":")
    return int(count) if prefix in ("quickstart", "quickstart-test") and count.isdecimal() else None


def _curate(recipe: Recipe) -> list[Size]:
    counts = [_generated_count(source) for source in recipe.data.inputs]
    known = sum(count for count in counts if count is not None) if None not in counts else None
    limit = recipe.data.limit
    sizes = []
    problems = min(known, limit) if known and limit else known or limit
    if problems:
        bound = "the inputs' rows" if not limit else "limit, at most the inputs' rows"
        sizes.append(Size("curate", "input rows, at most", problems, "rows", bound))
    if "difficulty" not in recipe.curate.steps:
        return sizes
    difficulty = recipe.curate.difficulty
    per_problem = difficulty.samples * difficulty.max_tokens
    sizes.append(Size("curate", "difficulty tokens a problem, at most", per_problem, "tokens", "samples × max_tokens"))
    if problems:
        count, formula = problems * difficulty.samples, "input rows × samples"
        sizes.append(Size("curate", "difficulty samples, at most", count, "samples", formula))
    return sizes


def _train(recipe: Recipe) -> list[Size]:
    train = recipe.train
    longest = recipe.model.max_prompt_tokens + train.longest_trained
    whole = max(1, train.learner.micro_batch_tokens * train.learner.sequence_parallel_size // longest)
    rows = [
        *_rollout(recipe),
        ("longest training sequence", longest, "tokens", "max_prompt_tokens + max_tokens, of any phase"),
        (
            "longest sequences in a micro-batch",
            whole,
            "samples",
            "micro_batch_tokens × sequence_parallel_size ÷ longest, at least 1",
        ),
        ("updates a step", train.objective.updates_per_step, "updates", "epochs × minibatches"),
        ("updates in all, at most", train.updates, "updates", "steps × epochs × minibatches"),
        *_phases(recipe),
        *_validation(recipe),
    ]
    return [Size("train", *row) for row in rows]


def _rollout(recipe: Recipe) -> list[tuple[str, int, str, str]]:
    """What enters and is decoded in a step, which is one round of segments, or up to ``max_rounds`` to be refilled.

    A sample is decoded in ``segments`` rounds at most. With ``in_flight`` whole prompts enter until at least so many
    samples are unfinished: the last may bring all but one of its samples too many.
    """
    train, rollout = recipe.train, recipe.train.rollout
    rounds, segments, group, in_flight = rollout.rounds, rollout.segments, rollout.group_size, rollout.in_flight
    times = " × max_rounds" if rounds > 1 else ""
    at_most = ", at most" if rounds > 1 or in_flight or rollout.max_age else ""
    prompts, entering = (
        (in_flight // group, "in_flight ÷ group_size") if in_flight else (rollout.prompts_per_step, "prompts_per_step")
    )
    samples, segment = prompts * group, train.longest_trained // segments
    if in_flight and segments > 1:
        carried = at_once = in_flight + group - 1
        carried_how = at_once_how = "in_flight + group_size − 1"
    else:
        carried, carried_how = samples * (segments - 1), f"{entering} × group_size × (segments − 1)"
        at_once, at_once_how = samples * segments, f"{entering} × group_size × segments"
    more_how = f" + {entering} × group_size × (max_rounds − 1)" if rounds > 1 else ""
    return [
        (f"new prompts a step{at_most}", prompts * rounds, "prompts", f"{entering}{times}"),
        (f"new samples a step{at_most}", samples * rounds, "samples", "new prompts × group_size"),
        ("segment length", rollout.max_tokens // segments, "tokens", "max_tokens ÷ segments"),
        ("unfinished samples carried over, at most", carried, "samples", carried_how),
        ("samples decoded at once, at most", at_once, "samples", at_once_how),
        (
            "samples decoded in a step, at most",
            at_once + samples * (rounds - 1),
            "samples",
            f"decoded at once{more_how}",
        ),
        (
            "tokens decoded in a step, at most",
            at_once * rounds * segment,
            "tokens",
            f"decoded at once{times} × segment length, of any phase",
        ),
        (f"prompts in all{at_most}", train.steps * prompts * rounds, "prompts", "steps × new prompts"),
        (f"samples in all{at_most}", train.steps * samples * rounds, "samples", "steps × new samples"),
    ]


def _phases(recipe: Recipe) -> list[tuple[str, int, str, str]]:
    """Where each phase of a schedule ends, and its segments."""
    train = recipe.train
    found = phases(train)
    rows = []
    for before, phase, after in zip(found, found[1:], [*found[2:], None], strict=False):
        steps = (after.from_step if after else train.steps + 1) - phase.from_step
        name = f"phase {phase.number}, from step {phase.from_step}"
        rows.append((f"{name}: steps", steps, "steps", changes(before, phase)))
        if phase.max_tokens != before.max_tokens:
            length = phase.max_tokens // train.rollout.segments
            rows.append((f"{name}: segment length", length, "tokens", "max_tokens ÷ segments"))
    return rows


def _validation(recipe: Recipe) -> list[tuple[str, int, str, str]]:
    """Samples of a validation, where the number of its problems is known or bounded, and how many there are."""
    settings = recipe.train.validation
    if not settings.every:
        return []
    problems = _generated_count(settings.problems) if settings.problems else settings.size or MOST_HELD_OUT
    at_most = ", at most" if not (settings.problems or settings.size) else ""
    count = recipe.train.steps // settings.every + 1
    rows = [("validations", count, "validations", "steps ÷ validation.every, and one before the first step")]
    if problems:
        total, formula = problems * settings.samples, f"{problems} problems × validation.samples"
        rows.append((f"samples of a validation{at_most}", total, "samples", formula))
    return rows


def _evaluate(recipe: Recipe) -> list[Size]:
    evaluate = recipe.evaluate
    sizes = [
        Size("evaluate", "samples a problem", evaluate.samples, "samples", "samples"),
        Size(
            "evaluate",
            "tokens a problem, at most",
            evaluate.samples * evaluate.max_tokens,
            "tokens",
            "samples × max_tokens",
        ),
    ]
    counts = []
    for benchmark in evaluate.benchmarks:
        known = _generated_count(benchmark.source)
        counts.append(min(known, benchmark.limit) if known and benchmark.limit else known or benchmark.limit)
    if counts and all(counts):
        total = sum(counts) * evaluate.samples
        sizes.append(
            Size(
                "evaluate",
                "samples of a model, at most",
                total,
                "samples",
                "Σ benchmarks' problems × samples",
            )
        )
    return sizes


def _memory(recipe: Recipe, shape: ModelShape, processes: int) -> list[Size]:
    """Engine and trainer memory. ZeRO: stage 1 divides optimizer state, 2 gradients too, 3 weights too."""
    learner, dtype = recipe.train.learner, recipe.model.dtype
    width = 2 if dtype == "bfloat16" else 4
    parameters = shape.parameters
    kv_token = 2 * shape.layers * shape.kv_heads * shape.head_dim * width
    stage = learner.zero_stage
    # AdamW keeps two fp32 moments; a bfloat16 model has an fp32 master copy besides.
    state = _ADAM_BYTES + (_MASTER_BYTES if width == 2 else 0)
    place = "CPU, " if learner.offload_optimizer else ""
    longest = recipe.model.max_prompt_tokens + recipe.train.longest_trained

    def share(value: int, from_stage: int) -> tuple[int, str]:
        return (-(-value // processes), f" ÷ {processes} processes") if stage >= from_stage else (value, "")

    weights, weights_how = share(parameters * width, 3)
    gradients, gradients_how = share(parameters * width, 2)
    optimizer, optimizer_how = share(parameters * state, 1)
    kv_full, logits = kv_token * recipe.max_model_len, longest * shape.vocab * _FP32_BYTES
    rows = [
        ("model", "parameters", parameters, "parameters", "from config.json"),
        ("model", "parameters active a token", shape.active_parameters, "parameters", "from config.json"),
        ("engine", "weights", parameters * width, "bytes", f"parameters × {width} B"),
        ("engine", "KV cache a token", kv_token, "bytes", f"2 × layers × KV heads × head dim × {width} B"),
        (
            "engine",
            "KV cache of the longest sequence",
            kv_full,
            "bytes",
            f"{recipe.max_model_len} tokens × the above",
        ),
        ("learner", "weights a process", weights, "bytes", f"parameters × {width} B{weights_how}"),
        ("learner", "gradients a process", gradients, "bytes", f"parameters × {width} B{gradients_how}"),
        (
            "learner",
            f"optimizer state a process ({place}ZeRO {stage})",
            optimizer,
            "bytes",
            f"parameters × {state} B{optimizer_how}",
        ),
        (
            "learner",
            "fp32 logits of the longest sequence",
            logits,
            "bytes",
            f"{longest} tokens × {shape.vocab} × 4 B, were it not tiled",
        ),
    ]
    return [Size(*row) for row in rows]

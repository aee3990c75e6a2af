"""What tests/test_train_ranks.py runs in one process and in several: updates on the same samples, however divided.

Usage: ranks_worker.py MODEL OUTPUT [NAME ...]. The first rank writes, by case (all, or those named), the figures of
each update, the gradient of the first and the weights after the last.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import torch
from test_train_learner import trajectories

from ulorl.process import quiet_libraries
from ulorl.recipe import ModelRecipe
from ulorl.recipe_train import LearnerRecipe, ObjectiveRecipe
from ulorl.train.checkpoint import TrainerState, load_checkpoint, save_checkpoint
from ulorl.train.learner import Learner
from ulorl.train.ranks import open_ranks
from ulorl.train.sequence_parallel import open_sequence_group

FIGURES = (
    "objective/loss",
    "objective/grad_norm",
    "objective/tokens",
    "objective/samples",
    "objective/kl",
    "objective/clipped_share",
    "objective/masked_share",
    "entropy/mean",
    "mismatch/mean",
    "mismatch/max",
)
DYNAMIC = ObjectiveRecipe(tau=0.02, sigma=4.0)
SEVERAL = ObjectiveRecipe(
    minibatches=3, epochs=2, kl=0.1, entropy_bonus=0.01, entropy_scope="batch", tau=0.02, sigma=4.5, clip_high=0.001,
    aggregation="sequence",
)  # fmt: skip
EVEN, FIRST_ALONE, FEW = "even", "the first rank has all", "fewer samples than ranks"


PADDED, PACKED, SHARED = {"packing": "never"}, {"packing": "always"}, {"sequence_parallel_size": 2}
SMALL = {"micro_batch_tokens": 60}
PLAIN = "padded"


class Case(NamedTuple):
    """One way to compute two updates. ``sequence_parallel_size`` is 1 in a run of one process."""

    name: str
    samples: str
    objective: ObjectiveRecipe
    settings: dict
    dtype: str = "float32"


SAME = [
    Case(name, EVEN, DYNAMIC, settings)
    for name, settings in {
        PLAIN: PADDED,
        "packed": PACKED,
        "padded, small micro-batches": PADDED | SMALL,
        "padded, zero 3": PADDED | {"zero_stage": 3, "micro_batch_tokens": 100},
        **{f"offloaded, zero {stage}": {"zero_stage": stage, "offload_optimizer": True} for stage in (1, 2, 3)},
        "all offloaded": {"zero_stage": 3, "offload_optimizer": True, "offload_parameters": True},
        "parameters offloaded": {"zero_stage": 3, "offload_parameters": True},
        **{f"zero {stage}": SMALL | {"zero_stage": stage} for stage in (0, 1, 2, 3)},
        **{f"shared, zero {stage}": SHARED | SMALL | {"zero_stage": stage} for stage in (0, 1, 2, 3)},
        "shared, whole": SHARED,
        "shared, checkpointed": SHARED | SMALL | {"activation_checkpointing": True},
        "shared, checkpointed, zero 3": SHARED | SMALL | {"activation_checkpointing": True, "zero_stage": 3},
    }.items()
]
"""The same updates, which have to be equal in all these ways."""


RESUMED = ["zero 1", "zero 3", "shared, zero 3"]


def cases():
    yield from SAME
    for stage in (0, 3):
        yield Case(f"first alone, zero {stage}", FIRST_ALONE, DYNAMIC, SMALL | {"zero_stage": stage})
        yield Case(f"few, zero {stage}", FEW, DYNAMIC, {"zero_stage": stage})
    yield Case("first alone, shared", FIRST_ALONE, DYNAMIC, SMALL | SHARED)
    yield Case("few, shared", FEW, DYNAMIC, SHARED)
    for stage in (0, 2):
        yield Case(f"half precision, zero {stage}", EVEN, DYNAMIC, {"zero_stage": stage}, "bfloat16")
        yield Case(f"half precision, shared, zero {stage}", EVEN, DYNAMIC, SHARED | {"zero_stage": stage}, "bfloat16")
    yield Case("several updates", EVEN, SEVERAL, SMALL | {"zero_stage": 2})
    yield Case("several updates, padded", EVEN, SEVERAL, PADDED | {"micro_batch_tokens": 100})
    yield Case("several updates, shared", EVEN, SEVERAL, SMALL | SHARED | {"zero_stage": 2})


def own(kind, ranks, seed):
    """This rank's samples: groups of 4, numbered, dealt out by number."""
    items = trajectories(4 if kind == FEW else 16, seed)[: 1 if kind == FEW else None]
    numbered = [type(item)(**vars(item) | {"group": place // 4}) for place, item in enumerate(items)]
    if kind == FIRST_ALONE:
        return numbered if ranks.first else []
    return [item for item in numbered if ranks.owns(item.group)]


def gradient(learner):
    """The gradient of the first update, by parameter: AdamW's first moment then is (1 - beta) of it, clipped."""
    from deepspeed.utils import safe_get_full_optimizer_state

    found = {}
    for name, parameter in learner.hf_model.named_parameters():
        moment = safe_get_full_optimizer_state(parameter, "exp_avg")
        if moment is None:  # without ZeRO and in float32, the parameter's own
            moment = learner.engine.basic_optimizer.state[parameter]["exp_avg"]
        found[name] = moment.clone() / (1 - learner.recipe.betas[0])
    return found


def main(model, output, *names):
    quiet_libraries()
    ranks, found, done = open_ranks(60), {}, {}
    for name, kind, objective, settings, dtype in cases():
        if names and name not in names:
            continue
        alone = {"sequence_parallel_size": 1} if ranks.world == 1 else {}
        recipe = LearnerRecipe(lr=1e-3, max_grad_norm=0.5, **settings | alone)
        same = done.setdefault(repr((kind, objective, recipe, dtype)), name)
        if same != name:  # one process: what the others share is all its own
            found[name] = found[same]
            continue
        learner = Learner(model, ModelRecipe(dtype=dtype), recipe, objective, 0.8, 64, ranks)
        steps, first = [], {}
        for seed in (1, 2):
            metrics = learner.update(own(kind, ranks, seed)).metrics()
            steps.append({figure: metrics[figure] for figure in FIGURES if figure in metrics})
            first = first or (gradient(learner) if dtype == "float32" else {})
        weights = {key: tensor.clone() for key, tensor in learner.named_tensors()}
        found[name] = {"steps": steps, "gradient": first, "weights": weights}
        if name in RESUMED:
            found[f"resumed, {name}"] = resumed(
                output.parent / f"{name} of {ranks.world}", model, learner, recipe, ranks
            )
    found["attention"] = attention_errors(ranks.world)
    if ranks.first:
        torch.save(found, output)
    ranks.meet("end")


def attention_errors(world):
    """Causal attention whose heads are divided, against the same undivided: largest differences of the results and of
    the gradients of queries, keys and values, by numbers of heads."""
    group, errors = open_sequence_group(world), {}
    for heads, kv_heads in ((4, 4), (4, 2), (8, 4), (4, 1), (12, 4)):
        random = torch.Generator().manual_seed(heads)
        inputs = [
            torch.randn(1, 4 * world, count, 3, generator=random, dtype=torch.float64)
            for count in (heads, kv_heads, kv_heads, heads)
        ]

        def attention(query, key, value):
            query, key, value = (one.transpose(1, 2) for one in (query, key, value))
            shared = {"is_causal": True, "enable_gqa": True}
            return torch.nn.functional.scaled_dot_product_attention(query, key, value, **shared).transpose(1, 2)

        def piece(whole):
            return whole.chunk(world, dim=1)[group.rank]

        *whole, slope = [one.clone().requires_grad_() for one in inputs]
        expected = attention(*whole)
        (expected * slope).sum().backward()
        *own, own_slope = [piece(one).clone().requires_grad_() for one in inputs]
        found = group.attend(attention, *own)
        (found * own_slope).sum().backward()
        pairs = [
            (found, piece(expected)),
            *((mine.grad, piece(all_.grad)) for mine, all_ in zip(own, whole, strict=True)),
        ]
        errors[heads, kv_heads] = max(float((one - other).detach().abs().max()) for one, other in pairs)
    return errors


def resumed(root, model, learner, recipe, ranks):
    """The figures of an update after a checkpoint, by the learner that wrote it and by one that read it."""
    path = save_checkpoint(root, learner, TrainerState(2, learner.version, 0, 0), [], model, keep=1)
    other = Learner(model, ModelRecipe(), recipe, DYNAMIC, 0.8, 64, ranks)
    state, _ = load_checkpoint(path, other, [])
    assert state.processes == ranks.world
    return [one.update(own(EVEN, ranks, 3)).metrics() for one in (learner, other)]


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])

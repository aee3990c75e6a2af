"""The boundary of one or several benchmarks, from the scores of two evaluations. Pure: tables in, JSON types out.

Invariants: both models have the same number of samples of each of the same problems, or the comparison is refused;
corrections for many problems and many benchmarks count all that were looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ulorl.errors import UserError
from ulorl.evaluate.boundary.bands import bounded, chosen_ks, crossing, curves, where
from ulorl.evaluate.boundary.by_rate import by_base_rate
from ulorl.evaluate.boundary.luck import (
    against_chance,
    any_chance,
    by_successes,
    gain_chances,
    kinds_of,
    rate_at_most,
)
from ulorl.evaluate.significance import holm
from ulorl.evaluate.statistics import LEVEL

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
PROBLEMS_SCHEMA = pa.schema(
    [
        pa.field("benchmark", pa.string(), nullable=False),
        pa.field("problem_id", pa.string(), nullable=False),
        pa.field("problem", pa.string(), nullable=False),
        pa.field("reference", pa.string(), nullable=False),
        pa.field("samples", pa.int32(), nullable=False),
        pa.field("base_correct", pa.int32(), nullable=False),
        pa.field("trained_correct", pa.int32(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("luck", pa.float64()),
        pa.field("luck_any", pa.float64()),
        pa.field("unsolved_rate_at_most", pa.float64()),
    ]
)
"""One row a problem. ``kind``: both, gained, lost or never. Of problems gained and lost: ``luck``, the probability that
all right samples fall to one model where nothing changed; ``luck_any``, a bound for the probability that luck does as
much to any problem of all. ``unsolved_rate_at_most``: what a model's rate is at most (at 95 %) that has not solved the
problem."""
SHARES = ("truncated", "no_answer", "undecided")


@dataclass(frozen=True)
class Paired:
    """One benchmark's right samples of both models, in the same order of problems."""

    samples: int
    base_P: IntArray
    trained_P: IntArray
    base: pa.Table
    trained: pa.Table


def paired(name: str, base: pa.Table, trained: pa.Table) -> Paired:
    """The two scores (SCORES_SCHEMA) side by side, by problem. UserError where they hold different problems, another
    reference for one, or another number of samples."""
    base, trained = base.sort_by("problem_id"), trained.sort_by("problem_id")
    base_ids, trained_ids = (one["problem_id"].to_pylist() for one in (base, trained))
    if base_ids != trained_ids:
        only_base, only_trained = set(base_ids) - set(trained_ids), set(trained_ids) - set(base_ids)
        raise UserError(
            f"boundary: {name}: the two hold different problems ({len(only_base)} only the base, {len(only_trained)} "
            f"only the trained model, such as {min(only_base | only_trained)}); evaluate both on the same"
        )
    for row, (first, second) in enumerate(zip(*(one["reference"].to_pylist() for one in (base, trained)), strict=True)):
        if first != second:
            raise UserError(
                f"boundary: {name}: problem {base_ids[row]} has the reference {first[:60]!r} for the base and "
                f"{second[:60]!r} for the trained model; mend one"
            )
    samples = _samples(name, base_ids, *(one["samples"].to_pylist() for one in (base, trained)))
    base_P, trained_P = (np.array(one["correct"].to_pylist(), dtype=np.int64) for one in (base, trained))
    return Paired(samples, base_P, trained_P, base, trained)


def _samples(name: str, ids: Sequence[str], base: Sequence[int], trained: Sequence[int]) -> int:
    """The samples that every problem has of both models; UserError where that is no single number."""
    for label, counts in (("the base", base), ("the trained model", trained)):
        if min(counts) != max(counts):
            few, many = (ids[counts.index(pick(counts))] for pick in (min, max))
            raise UserError(
                f"boundary: {name}: {label} has {min(counts)} samples of problem {few} and {max(counts)} of {many}; "
                "every problem needs the same number"
            )
    if base[0] != trained[0]:
        raise UserError(
            f"boundary: {name}: {base[0]} samples a problem of the base and {trained[0]} of the trained model; sample "
            f"the one with fewer again with --pass-k {max(base[0], trained[0])}, which extends it"
        )
    return base[0]


def boundary_of(
    pairs: Mapping[str, Paired], most_k: int, significance: float
) -> tuple[dict[str, dict[str, Any]], pa.Table]:
    """What boundary.json holds of each benchmark, and PROBLEMS_SCHEMA of all. ``most_k`` is the largest k in tables (0:
    all samples); at ``significance`` a gain counts as beyond luck. UserError for k above the samples."""
    for name, pair in pairs.items():
        if most_k > pair.samples:
            raise UserError(
                f"boundary: {name}: pass@{most_k} needs {most_k} samples a problem, there are {pair.samples}"
            )
    chances = {name: gain_chances(one.samples)[one.base_P + one.trained_P] for name, one in pairs.items()}
    of_any = any_chance(np.concatenate(list(chances.values())))
    found, tables, start = {}, [], 0
    for name, pair in pairs.items():
        any_P = of_any[start : start + len(pair.base_P)]
        start += len(pair.base_P)
        found[name] = _benchmark(pair, chances[name], any_P, most_k, significance)
        tables.append(_problems(pair, chances[name], any_P))
    for kind in ("gained", "lost"):
        adjusted = holm({name: one["luck"][kind]["p"] for name, one in found.items()})
        for name, one in found.items():
            one["luck"][kind]["p_holm"] = adjusted[name]
    return found, pa.concat_tables(tables)


def _benchmark(
    pair: Paired, chances_P: FloatArray, any_P: FloatArray, most_k: int, significance: float
) -> dict[str, Any]:
    base_P, trained_P, samples = pair.base_P, pair.trained_P, pair.samples
    kinds = kinds_of(base_P, trained_P)
    gained_P, lost_P = (np.array([kind == one for kind in kinds]) for one in ("gained", "lost"))
    bounds = bounded(base_P, trained_P, samples, chosen_ks(samples, [most_k] if most_k else []))
    found = curves(base_P, trained_P, samples)
    return {
        "problems": len(base_P),
        "samples": samples,
        "most_k": most_k or samples,
        "kinds": {kind: Counter(kinds)[kind] for kind in ("both", "gained", "lost", "never")},
        "curves": found,
        "bounds": bounds,
        "better": where(bounds, 1),
        "worse": where(bounds, -1),
        "crossing": crossing(found["base"], found["trained"]),
        "luck": {
            "gained": against_chance(chances_P, int(gained_P.sum()))
            | {"beyond": int(np.sum(any_P[gained_P] <= significance))},
            "lost": against_chance(chances_P, int(lost_P.sum()))
            | {"beyond": int(np.sum(any_P[lost_P] <= significance))},
            "by_successes": by_successes(base_P, trained_P, samples),
        },
        "unsolved_rate_at_most": rate_at_most(samples, LEVEL),
        "by_base_rate": by_base_rate(base_P, trained_P, samples),
        "unsolved_samples": {
            "gained": _shares(pair.base, gained_P, samples),
            "lost": _shares(pair.trained, lost_P, samples),
        },
    }


def _shares(scores: pa.Table, chosen_P: NDArray[np.bool_], samples: int) -> dict[str, float | None] | None:
    """What became of the samples of the model that did not solve the chosen problems; None without such problems."""
    if not chosen_P.any():
        return None
    found: dict[str, float | None] = {}
    for name in SHARES:
        values = scores[name].filter(pa.array(chosen_P)).to_pylist()
        found[name] = None if None in values else sum(values) / (samples * len(values))
    return found


def _problems(pair: Paired, chances_P: FloatArray, any_P: FloatArray) -> pa.Table:
    kinds = kinds_of(pair.base_P, pair.trained_P)
    one_sided = [kind in ("gained", "lost") for kind in kinds]
    bound = rate_at_most(pair.samples, LEVEL)
    count = len(kinds)
    columns = {name: pair.base[name] for name in ("benchmark", "problem_id", "problem", "reference")}
    columns |= {
        "samples": pa.array([pair.samples] * count, pa.int32()),
        "base_correct": pa.array(pair.base_P, pa.int32()),
        "trained_correct": pa.array(pair.trained_P, pa.int32()),
        "kind": pa.array(kinds),
        "luck": pa.array(
            [float(p) if one else None for p, one in zip(chances_P, one_sided, strict=True)], pa.float64()
        ),
        "luck_any": pa.array(
            [float(p) if one else None for p, one in zip(any_P, one_sided, strict=True)], pa.float64()
        ),
        "unsolved_rate_at_most": pa.array([None if kind == "both" else bound for kind in kinds], pa.float64()),
    }
    return pa.table(columns).cast(PROBLEMS_SCHEMA)

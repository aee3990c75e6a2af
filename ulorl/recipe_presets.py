"""Named settings of training, each exactly what its paper says; what a paper leaves open keeps the default.

- `ulorl`: arXiv 2507.19766, the 128k run. Its dynamic sampling leaves uniform groups out; a step decodes one segment.
- `prorl`: arXiv 2505.24864. Its KL coefficient is called small; 1e-4 is the authors' later public recipe. It resets the
  reference when a validation set of all tasks stalls or degrades, and does not say how often it looks or how long it
  waits: every 20 steps and 5 validations are ours.
- `dapo`: arXiv 2503.14476. 16 updates a batch, 20 rollouts of warm-up (320 updates), soft overlong punishment.
- `grpo`: arXiv 2402.03300, the DeepSeekMath run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Preset = Literal["none", "ulorl", "prorl", "dapo", "grpo"]

PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "none": {},
    "ulorl": {
        "rollout": {
            "prompts_per_step": 128,
            "group_size": 8,
            "max_tokens": 131072,
            "segments": 8,
            "temperature": 0.85,
            "top_p": 1.0,
            "top_k": 0,
            "dynamic_sampling": "drop",
        },
        "objective": {
            "ratio": "pois",
            "advantage": "grpo",
            "aggregation": "token",
            "truncated": "wrong",
            "mastered": "dynamic",
            "tau": 0.99,
            "sigma": 0.2,
            "entropy_scope": "response",
        },
        "learner": {"lr": 1e-6},
    },
    "prorl": {
        "rollout": {
            "prompts_per_step": 256,
            "group_size": 16,
            "max_tokens": 8192,
            "segments": 1,
            "temperature": 1.2,
            "dynamic_sampling": "refill",
        },
        "objective": {
            "clip_low": 0.2,
            "clip_high": 0.4,
            "minibatches": 4,
            "mastered": "never",
            "kl": 1e-4,
            "kl_estimator": "k2",
            "reference_reset_patience": 5,
        },
        "learner": {"lr": 2e-6},
        "validation": {"every": 20},
    },
    "dapo": {
        "rollout": {
            "prompts_per_step": 512,
            "group_size": 16,
            "max_tokens": 20480,
            "segments": 1,
            "temperature": 1.0,
            "dynamic_sampling": "refill",
        },
        "objective": {
            "clip_low": 0.2,
            "clip_high": 0.28,
            "minibatches": 16,
            "mastered": "never",
            "truncated": "soft",
            "soft_buffer": 4096,
        },
        "learner": {"lr": 1e-6, "warmup_steps": 320},
    },
    "grpo": {
        "rollout": {
            "prompts_per_step": 16,
            "group_size": 64,
            "max_tokens": 1024,
            "segments": 1,
            "dynamic_sampling": "off",
        },
        "objective": {
            "ratio": "tois",
            "aggregation": "sequence",
            "mastered": "never",
            "kl": 0.04,
            "kl_estimator": "k3",
        },
        "learner": {"lr": 1e-6},
    },
}


def with_preset(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The train section as given, over its preset: what is given wins, setting by setting."""
    merged = dict(settings)
    for section, values in PRESETS.get(merged.get("preset", "none"), {}).items():
        given = merged.get(section, {})
        if isinstance(given, Mapping):
            merged[section] = {**values, **given}
    return merged

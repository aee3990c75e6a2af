"""What a quickstart model does on generated problems: rates by style, family and length, entropy, lengths.

Samples with plain transformers at one setting; ``ulorl eval`` is the real evaluation. Answers are compared as
text, since the generator writes plain integers.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ulorl.quickstart.dirt import Row

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_BOXED = re.compile(r"\\boxed\{(\d+)\}\Z")
_BRIEF = re.compile(r"\A(?:\w|\d+:)\d+ ")


@dataclass(frozen=True)
class Sampled:
    """One sample: its problem's row, text without the end token, length with it, and summed entropy."""

    row: Row
    text: str
    tokens: int
    entropy: float

    @property
    def right(self) -> bool:
        """The text ends in the boxed reference."""
        found = _BOXED.search(self.text)
        return found is not None and found[1] == self.row["answer"]

    @property
    def style(self) -> str:
        """How the answer is worked, told by the beginning of the text."""
        if self.text.startswith("\\boxed{"):
            return "guess"
        return "brief" if _BRIEF.match(self.text) else "full"


def sample(
    model: Any,
    tokenizer: PreTrainedTokenizerFast,
    rows: Sequence[Row],
    samples: int,
    *,
    temperature: float = 0.85,
    top_p: float = 0.95,
    top_k: int = 20,
    max_tokens: int = 320,
    batch: int = 256,
    seed: int = 0,
) -> list[Sampled]:
    """``samples`` samples a row, ordered by the prompt's length.

    Entropy is of the untruncated distribution at ``temperature``, in nats, summed over the sample's tokens.
    """
    import torch
    from torch.distributions import Categorical

    torch.manual_seed(seed)
    model.eval()
    tokenizer.padding_side = "left"
    work = [row for row in sorted(rows, key=lambda row: len(str(row["problem"]))) for _ in range(samples)]
    found = []
    for start in range(0, len(work), batch):
        part = work[start : start + batch]
        inputs = tokenizer([f"{row['problem']}\n" for row in part], return_tensors="pt", padding=True)
        with torch.no_grad():
            out = model.generate(
                input_ids=inputs.input_ids,
                attention_mask=inputs.attention_mask,
                do_sample=True,
                temperature=temperature,
                top_p=top_p,
                top_k=top_k,
                max_new_tokens=max_tokens,
                return_dict_in_generate=True,
                output_logits=True,
            )
        ids = out.sequences[:, inputs.input_ids.shape[1] :]
        entropies = torch.stack(
            [Categorical(logits=logits.float() / temperature).entropy() for logits in out.logits],
            1,
        )
        for row, tokens, entropy in zip(part, ids.tolist(), entropies, strict=True):
            length = tokens.index(1) + 1 if 1 in tokens else len(tokens)
            text = str(tokenizer.decode(tokens[:length])).removesuffix("<eos>")
            found.append(Sampled(row, text, length, float(entropy[:length].sum())))
    return found


def summary(sampled: Sequence[Sampled]) -> dict[str, Any]:
    """pass@1 overall, by family, steps and style; pass@n; shares of styles; lengths; entropy."""
    by_problem = defaultdict(list)
    for one in sampled:
        by_problem[str(one.row["id"])].append(one.right)
    styles = Counter(one.style for one in sampled)
    full = [one for one in sampled if one.style == "full"]
    return {
        "pass@1": _mean(one.right for one in sampled),
        f"pass@{len(next(iter(by_problem.values())))}": _mean(any(rights) for rights in by_problem.values()),
        "styles": {style: round(count / len(sampled), 3) for style, count in sorted(styles.items())},
        "right by style": _by(sampled, lambda one: one.style),
        "right by family": _by(sampled, lambda one: str(one.row["family"])),
        "right by steps": _by(sampled, _steps),
        "right when full, by family": _by(full, lambda one: str(one.row["family"])),
        "right when full, by steps": _by(full, _steps),
        "tokens": {
            "mean": _mean(one.tokens for one in sampled),
            "longest": max(one.tokens for one in sampled),
            "mean when full": _mean(one.tokens for one in full),
        },
        "entropy a token": round(sum(one.entropy for one in sampled) / sum(one.tokens for one in sampled), 4),
    }


def _steps(one: Sampled) -> str:
    steps = int(str(one.row["steps"]))
    return next(f"{low:02d}-{high:02d}" for low, high in ((1, 2), (3, 5), (6, 11), (12, 24)) if steps <= high)


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return round(sum(listed) / len(listed), 4) if listed else float("nan")


def _by(sampled: Sequence[Sampled], key: Any) -> dict[str, float]:
    groups = defaultdict(list)
    for one in sampled:
        groups[key(one)].append(one.right)
    return {name: _mean(groups[name]) for name in sorted(groups)}

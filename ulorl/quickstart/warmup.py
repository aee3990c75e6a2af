"""Supervised warm-up of the base model on generated train-split texts.

Invariants: the same settings and seed draw the same texts; only the solution carries loss; the test split is
never drawn. Does not: measure the model, or write files.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ulorl.quickstart.problems import draw_task, word
from ulorl.quickstart.solutions import STYLES, Style, worked_solution
from ulorl.seeds import derive_seed

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

POOL = 8
"""Batches that are drawn together and cut by length, so that little is padded; a stage is whole pools."""
ADAMW_SHARE = 0.2
"""Learning rate of embeddings and norms (AdamW), as a share of the matrices' (Muon)."""


@dataclass(frozen=True)
class Stage:
    """A stretch of the warm-up: updates, sequences an update, longest problem (in steps), styles' weights.

    A ``drill`` is two steps from the middle of a careful solution, without a problem: it teaches the single
    steps at a tenth of the tokens. ``easy`` is the share of one-step problems.
    """

    updates: int
    batch: int
    longest: int = 24
    careful: float = 0.85
    guess: float = 0.05
    slip: float = 0.10
    easy: float = 0.05
    drill: bool = False


@dataclass(frozen=True)
class WarmupSettings:
    """Everything that determines the base model. ``lr`` is Muon's, for the matrices."""

    lr: float = 2e-2
    seed: int = 0
    stages: tuple[Stage, ...] = (
        Stage(updates=120, batch=192, drill=True),
        Stage(updates=320, batch=32, longest=6),
        Stage(updates=320, batch=32),
        Stage(updates=160, batch=32, careful=0.33, guess=0.35, slip=0.32, easy=0.3),
    )

    @property
    def updates(self) -> int:
        """Updates of all stages."""
        return sum(stage.updates for stage in self.stages)

    def stage_at(self, update: int) -> Stage:
        """The stage to which an update belongs."""
        for stage in self.stages:
            if update < stage.updates:
                return stage
            update -= stage.updates
        raise IndexError(f"update {update} lies {update} after the last one")


def build_model(vocabulary: int, seed: int) -> Qwen3ForCausalLM:
    """An untrained Qwen3 model of about 0.8 M parameters."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        head_dim=32,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        pad_token_id=0,
        bos_token_id=None,
        eos_token_id=1,
        dtype="float32",
    )
    # The flash kernel's backward pass is slow on a CPU at these lengths.
    config._attn_implementation = "eager"
    return Qwen3ForCausalLM(config)


def draw_texts(count: int, stage: Stage, rng: random.Random) -> list[tuple[str, str]]:
    """(context, what is learnt to follow) of the train split; a whole solution ends in the end token."""
    return [_drill(rng, stage) if stage.drill else _whole(rng, stage) for _ in range(count)]


def _whole(rng: random.Random, stage: Stage) -> tuple[str, str]:
    task = draw_task("train", rng, easy=rng.random() < stage.easy, longest=stage.longest)
    style: Style = rng.choices(STYLES, [stage.careful, stage.guess, stage.slip])[0]
    return word(task, rng) + "\n", worked_solution(task, style, rng) + "<eos>"


def _drill(rng: random.Random, stage: Stage) -> tuple[str, str]:
    while (task := draw_task("train", rng, longest=stage.longest)).steps < 4:
        pass
    lines, _ = task.work(lambda _, right: right)
    first = rng.randrange(len(lines) - 1)
    before, equals, after = lines[first].full.partition("=")
    return before + equals, after + lines[first + 1].full


def batches(
    settings: WarmupSettings, tokenizer: PreTrainedTokenizerFast, first: int = 0
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """(ids_BT, labels_BT) of the updates from ``first`` on; labels are -100 on prompts and padding."""
    for pool in range(first // POOL, math.ceil(settings.updates / POOL)):
        rng = random.Random(derive_seed(settings.seed, "warmup", pool))
        stage = settings.stage_at(pool * POOL)
        texts = draw_texts(stage.batch * POOL, stage, rng)
        pairs = [(tokenizer(prompt).input_ids, tokenizer(text).input_ids) for prompt, text in texts]
        pairs.sort(key=lambda pair: len(pair[0]) + len(pair[1]))
        order = list(range(POOL))
        rng.shuffle(order)
        for place, part in enumerate(order):
            if first <= pool * POOL + place < settings.updates:
                yield _pad(pairs[part * stage.batch : (part + 1) * stage.batch])


def _pad(pairs: list[tuple[list[int], list[int]]]) -> tuple[torch.Tensor, torch.Tensor]:
    import torch

    width = max(len(prompt) + len(text) for prompt, text in pairs)
    ids = torch.zeros((len(pairs), width), dtype=torch.long)
    labels = torch.full((len(pairs), width), -100)
    for row, (prompt, text) in enumerate(pairs):
        end = len(prompt) + len(text)
        ids[row, :end] = torch.tensor(prompt + text)
        labels[row, len(prompt) : end] = torch.tensor(text)
    return ids, labels


def schedule(update: int, updates: int) -> float:
    """Share of the learning rate: a linear rise over 30 updates, level, a linear fall over the last half."""
    return min((update + 1) / 30, 1.0, max(0.02, (updates - update) / (0.5 * updates)))


@dataclass
class Run:
    """A warm-up in progress, after ``step`` updates. Matrices are trained by Muon, the rest by AdamW."""

    model: Qwen3ForCausalLM
    muon: torch.optim.Optimizer
    adamw: torch.optim.Optimizer
    step: int = 0

    def state_dict(self) -> dict[str, Any]:
        """Everything a checkpoint needs."""
        return {
            "step": self.step,
            "model": self.model.state_dict(),
            "muon": self.muon.state_dict(),
            "adamw": self.adamw.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.step = state["step"]
        self.model.load_state_dict(state["model"])
        self.muon.load_state_dict(state["muon"])
        self.adamw.load_state_dict(state["adamw"])


def start(vocabulary: int, settings: WarmupSettings) -> Run:
    """An untrained model with its optimizers."""
    import torch

    model = build_model(vocabulary, settings.seed)
    matrices = [parameter for parameter in model.model.layers.parameters() if parameter.ndim == 2]
    known = {id(parameter) for parameter in matrices}
    others = [parameter for parameter in model.parameters() if id(parameter) not in known]
    return Run(
        model,
        torch.optim.Muon(matrices, lr=settings.lr, momentum=0.95, weight_decay=0.01),
        torch.optim.AdamW(others, lr=settings.lr * ADAMW_SHARE, betas=(0.9, 0.98), weight_decay=0.0),
    )


def train(run: Run, tokenizer: PreTrainedTokenizerFast, settings: WarmupSettings) -> Iterator[float]:
    """Train in place to the last step; yields the loss, in nats a token, after every step."""
    import torch
    from torch.nn.functional import cross_entropy

    run.model.train()
    for ids, labels in batches(settings, tokenizer, run.step):
        share = schedule(run.step, settings.updates)
        run.muon.param_groups[0]["lr"] = settings.lr * share
        run.adamw.param_groups[0]["lr"] = settings.lr * ADAMW_SHARE * share
        targets = labels[:, 1:]
        kept = targets != -100
        with torch.autocast("cpu", dtype=torch.bfloat16):
            hidden = run.model.model(input_ids=ids, use_cache=False).last_hidden_state[:, :-1]
            logits = run.model.lm_head(hidden[kept])
        loss = cross_entropy(logits.float(), targets[kept])
        run.model.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(run.model.parameters(), 1.0)
        run.muon.step()
        run.adamw.step()
        run.step += 1
        yield float(loss.detach())

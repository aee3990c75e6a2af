"""Supervised fine-tuning of a causal language model on labelled pairs, with transformers' own trainer.

Invariants: only the label (and the end of the reply) carries loss, and only there are logits computed; sequences are
padded on the left, so labels stand at the end of every row; a run that was killed goes on from its last whole
checkpoint with the same batches. Does not: generate pairs, or measure anything.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ulorl.engine.threads import thread_count
from ulorl.errors import UserError
from ulorl.verify.judge.pairs import LabelledPair
from ulorl.verify.judge.prompts import JudgePrompter, Question, shown
from ulorl.verify.judge.settings import JudgeTraining
from ulorl.verify.tiers import read_answer

if TYPE_CHECKING:
    import torch

IGNORED = -100
MAX_TOKENS = 160
"""Longer pairs are left out."""


def finetune(
    base: Path,
    prompter: JudgePrompter,
    pairs: Sequence[LabelledPair],
    settings: JudgeTraining,
    *,
    checkpoints: Path,
    result: Path,
    say: Callable[[str], None],
) -> None:
    """Trains the model in ``base`` and writes model and tokenizer to ``result``. Raises UserError."""
    import torch
    from transformers import AutoModelForCausalLM, PrinterCallback, TrainerCallback, TrainingArguments

    torch.set_num_threads(thread_count(settings.threads))
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32, local_files_only=True)
    except (OSError, ValueError) as error:
        raise UserError(f"judge: transformers cannot load {base}: {error}") from error
    # transformers loads settings of sampling without this, and refuses to save them; a judge is sampled with its own.
    model.generation_config.do_sample = True
    trained = freeze(model, settings.train_layers)
    rows = [row for row in (encode(prompter, pair) for pair in pairs) if len(row["input_ids"]) <= MAX_TOKENS]
    if not rows:
        raise UserError(f"judge: none of the {len(pairs)} pairs has at most {MAX_TOKENS} tokens")
    tokens = sum(len(row["input_ids"]) for row in rows)
    say(f"training {trained:,} parameters on {len(rows)} pairs, {tokens / len(rows):.0f} tokens on average")

    class Tell(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            if logs and "loss" in logs:
                say(f"update {state.global_step}/{state.max_steps}: loss {float(logs['loss']):.4f}")

    updates = -(-len(rows) // settings.batch_size) * settings.epochs
    arguments = TrainingArguments(
        output_dir=str(checkpoints),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch_size,
        learning_rate=settings.lr,
        lr_scheduler_type="linear",
        warmup_steps=max(1, round(0.03 * updates)),
        weight_decay=0.01,
        bf16=settings.bfloat16,
        use_cpu=not torch.cuda.is_available(),
        train_sampling_strategy="group_by_length",
        save_steps=settings.checkpoint_every,
        save_total_limit=2,
        logging_steps=max(1, min(25, updates // 20)),
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=False,
        seed=settings.seed,
    )
    trainer = _trainer_class()(
        model=model,
        args=arguments,
        train_dataset=rows,
        data_collator=lambda batch: collate(batch, prompter.tokenizer.pad_token_id or 0),
        callbacks=[Tell()],
    )
    trainer.remove_callback(PrinterCallback)
    resumed = last_checkpoint(checkpoints)
    if resumed is not None:
        say(f"going on from {resumed.name}")
    trainer.train(resume_from_checkpoint=None if resumed is None else str(resumed))
    model.save_pretrained(result)
    prompter.tokenizer.save_pretrained(result)


def encode(prompter: JudgePrompter, pair: LabelledPair) -> dict[str, list[int]]:
    """Token ids of prompt, label and end of reply, and how many at the end carry loss."""
    question = Question(shown(read_answer(pair.reference)), shown(read_answer(pair.answer)))
    ending = list(prompter.endings[0 if pair.equivalent else 1])
    if prompter.tokenizer.eos_token_id is not None:
        ending.append(prompter.tokenizer.eos_token_id)
    return {"input_ids": [*prompter.encode(question), *ending], "ending": [len(ending)]}


def collate(rows: Sequence[Mapping[str, list[int]]], pad_id: int) -> dict[str, torch.Tensor]:
    """input_ids and attention_mask (B, T), position_ids (B, T), and labels (B, K) of the last K tokens."""
    import torch

    width = max(len(row["input_ids"]) for row in rows)
    longest = max(row["ending"][0] for row in rows)
    pads = [width - len(row["input_ids"]) for row in rows]
    ids_BT = torch.tensor([[pad_id] * pad + row["input_ids"] for pad, row in zip(pads, rows, strict=True)])
    mask_BT = torch.tensor([[0] * pad + [1] * (width - pad) for pad in pads])
    labels_BK = ids_BT[:, -longest:].clone()
    for index, row in enumerate(rows):
        labels_BK[index, : longest - row["ending"][0]] = IGNORED
    positions_BT = (mask_BT.cumsum(-1) - 1).clamp(min=0)
    return {"input_ids": ids_BT, "attention_mask": mask_BT, "position_ids": positions_BT, "labels": labels_BK}


def freeze(model: Any, train_layers: int) -> int:
    """Leaves only the last layers trainable, all of them for 0; returns how many parameters that are."""
    import torch

    if train_layers:
        stacks = [module for module in model.modules() if isinstance(module, torch.nn.ModuleList)]
        layers = max(stacks, key=len, default=None)
        if layers is None or train_layers > len(layers):
            raise UserError(f"train_layers: {train_layers} layers of {0 if layers is None else len(layers)}")
        model.requires_grad_(False)
        for layer in layers[-train_layers:]:
            layer.requires_grad_(True)
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def last_checkpoint(directory: Path) -> Path | None:
    """The latest checkpoint that was written whole; what a kill left of others is removed.

    The trainer writes ``trainer_state.json`` last.
    """
    whole = []
    for path in directory.glob("checkpoint-*"):
        if (path / "trainer_state.json").is_file():
            whole.append(path)
        else:
            shutil.rmtree(path)
    return max(whole, key=lambda path: int(path.name.partition("-")[2]), default=None)


def _trainer_class() -> Any:
    import torch
    from transformers import Trainer

    class JudgeTrainer(Trainer):
        """Cross-entropy of the labels; logits are computed where labels are, nowhere else."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.model_accepts_loss_kwargs = False  # the mean is taken here

        def compute_loss(
            self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
        ) -> Any:
            labels_BK = inputs.pop("labels")
            output = model(**inputs, logits_to_keep=labels_BK.shape[1] + 1, use_cache=False)
            logits_NV = output.logits[:, :-1].float().flatten(0, 1)
            loss = torch.nn.functional.cross_entropy(logits_NV, labels_BK.flatten(), ignore_index=IGNORED)
            return (loss, output) if return_outputs else loss

    return JudgeTrainer

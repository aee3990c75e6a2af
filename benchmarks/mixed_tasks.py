"""Training on four tasks at once with a tiny model, on the CPU: rewards by task before and after, several seeds.

    .venv/bin/python benchmarks/mixed_tasks.py prepare                  # data and base model, into runs/mixed
    .venv/bin/ulorl run recipes/mixed.toml                              # one run
    .venv/bin/python benchmarks/mixed_tasks.py run --seeds 0 1 2        # three; a Markdown table, a plot

The base is the quickstart's model after a supervised warm start on texts of all four tasks, in which each problem is
answered in a good way or a bad one: a worked answer or a guess, an instruction kept or half kept. What training can
find is which way pays in which task. Rows of the tests are never drawn for training or for the warm start.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import cross_entropy
from training_runs import curve

from ulorl.quickstart import MODEL_DIR
from ulorl.quickstart.warmup import Stage, draw_texts
from ulorl.report.metrics import read_metrics
from ulorl.report.plot import Figure, standalone
from ulorl.seeds import derive_seed
from ulorl.verify.tasks.puzzles.make import Puzzles, make

Row = dict[str, Any]
UNITS = (("km", "m", 1000), ("kg", "g", 1000), ("m", "cm", 100), ("cm", "mm", 10), ("g", "mg", 1000))
WORDS = ("red", "blue", "green", "gold", "pink", "grey", "lime", "navy", "plum", "rose", "sand", "teal")
ENDINGS = ("the end", "so be it", "that is all")
PREPARED = Path("runs/mixed")
"""Where `recipes/mixed.toml` looks for data and base model."""
SUMS = {"max_terms": 4, "max_digits": 1}
SPELLING = {"min_word_len": 3, "max_word_len": 4}
MATH = Stage(updates=0, batch=0, longest=8, careful=0.34, guess=0.33, slip=0.33, easy=0.2)
GOOD = 0.45
"""Share of the warm start's texts that answer in the good way."""
REWARDS = ("reward/math", "reward/logic", "reward/stem", "reward/ifollow")
TESTED = 8
"""One row of so many is a test row, by a hash of its text."""


def stem(rng: random.Random) -> Row:
    """A conversion of units, as a short answer or as multiple choice."""
    big, small, factor = rng.choice(UNITS)
    number = rng.randint(2, 99)
    value, zeros = f"{number * factor} {small}", [1, 10, 100, 1000, 10000]
    if rng.random() < 0.5:
        return {"task": "stem", "problem": f"Convert {number} {big} to {small}.", "answer": value}
    others = rng.sample([f"{number * zero} {small}" for zero in zeros if zero != factor], 3)
    text = f"Which of these is {number} {big}?"
    return {"task": "stem", "problem": text, "answer": value, "choices": [value, *others]}


def ifollow(rng: random.Random) -> Row:
    """An instruction of two constraints."""
    count, word, ending = rng.randint(2, 6), rng.choice(WORDS), rng.choice(ENDINGS)
    capital = ("change_case:english_capital", {}, "in capital letters")
    small = ("change_case:english_lowercase", {}, "in small letters")
    quoted = ("startend:quotation", {}, "in quotation marks")
    comma = ("punctuation:no_comma", {}, "without a comma")
    many = ("length_constraints:number_words", {"num_words": count, "relation": "at least"}, f"at least {count} words")
    few = ("length_constraints:number_words", {"num_words": count, "relation": "less than"}, f"less than {count} words")
    named = ("keywords:existence", {"keywords": [word]}, f"with the word {word}")
    ended = ("startend:end_checker", {"end_phrase": ending}, f"with the end: {ending}")
    first, second = rng.choice((many, few, named, ended)), rng.choice((capital, small, quoted, comma))
    if first is ended and second is quoted:
        first = many
    return {
        "task": "ifollow",
        "prompt": f"Write on {rng.choice(WORDS)}: {first[2]}, {second[2]}.",
        "instruction_id_list": [first[0], second[0]],
        "kwargs": [first[1], second[1]],
    }


def answer(row: Row, rng: random.Random) -> str:
    """A response to a row, good or bad."""
    good = rng.random() < GOOD
    if row["task"] == "stem":
        return _convert(row, rng, good)
    if row["task"] == "ifollow":
        return _write(row, rng, good)
    return _add(row, rng, good) if row["id"].startswith("chain_sum") else _spell(row, rng, good)


def _convert(row: Row, rng: random.Random, good: bool) -> str:
    number, small = row["answer"].split()
    if good:
        return f"{number} {small} \\boxed{{{row['answer']}}}"
    if "choices" in row:
        return f"\\boxed{{{rng.choice('ABCD')}}}"
    return f"\\boxed{{{number[:1]}{'0' * rng.randint(0, 4)} {small}}}"


def _write(row: Row, rng: random.Random, good: bool) -> str:
    kept = [good or rng.random() < 0.5 for _ in range(2)]
    (first, second), (settings, _) = row["instruction_id_list"], row["kwargs"]
    count = settings.get("num_words", 3)
    if first.endswith("number_words") and (settings["relation"] == "less than") == kept[0]:
        count = rng.randint(1, count - 1)
    elif first.endswith("number_words"):
        count += rng.randint(0, 1)
    words = rng.sample(WORDS, count)
    if first == "keywords:existence" and kept[0]:
        words[rng.randrange(len(words))] = settings["keywords"][0]
    comma = second == "punctuation:no_comma" and not kept[1]
    text = (", " if comma else " ").join(words)
    if first == "startend:end_checker" and kept[0]:
        text += f" {settings['end_phrase']}"
    if second == "change_case:english_capital" and kept[1]:
        return text.upper()
    if second == "change_case:english_lowercase" and not kept[1]:
        return text.capitalize()
    return f'"{text}"' if second == "startend:quotation" and kept[1] else text


def _add(row: Row, rng: random.Random, good: bool) -> str:
    if not good:
        return f"\\boxed{{{int(row['answer']) + rng.randint(-4, 4)}}}"
    parts = json.loads(row["metadata"])["expression"].split()
    total, steps = int(parts[0]), ""
    for sign, term in zip(parts[1::2], parts[2::2], strict=True):
        before, total = total, total + (int(term) if sign == "+" else -int(term))
        steps += f"{before}{sign}{term}={total} "
    return f"{steps}\\boxed{{{total}}}"


def _spell(row: Row, rng: random.Random, good: bool) -> str:
    word = row["answer"]
    if not good:
        letters = list(word)
        rng.shuffle(letters)
        return f"\\boxed{{{''.join(letters)}}}"
    return f"{'-'.join(word)} \\boxed{{{word}}}"


def drawn(draw: Callable[[random.Random], Row], count: int, seed: int, test: bool) -> list[Row]:
    """``count`` different rows of one side."""
    rng, found = random.Random(derive_seed(seed, draw.__name__, str(test))), dict[str, Row]()
    while len(found) < count:
        row = draw(rng)
        text = row.get("problem") or row["prompt"]
        if is_test(text) == test:
            found.setdefault(text, row)
    return list(found.values())


def is_test(text: str) -> bool:
    """Whether a row of this text is one of the tests."""
    return derive_seed(0, "side", text) % TESTED == 0


def puzzles(count: int, seed: int, test: bool) -> list[Row]:
    """``count`` puzzles of either data set, of one side."""
    wanted = [Puzzles("chain_sum", 8 * count, SUMS), Puzzles("spell_backward", 8 * count, SPELLING)]
    found: dict[str, list[Row]] = {one.name: [] for one in wanted}
    for row in make(wanted, derive_seed(seed, "puzzles")):
        rows = found[row["id"].partition("/")[0]]
        if is_test(row["problem"]) == test and len(rows) < count:
            rows.append(row)
    return [row for rows in found.values() for row in rows]


def prepare(options: argparse.Namespace) -> None:
    """Write the data of both sides and the base model."""
    for side, test in (("train", False), ("test", True)):
        directory = options.output / side
        directory.mkdir(parents=True, exist_ok=True)
        counts = {"logic": 30, "stem": 60, "ifollow": 60} if test else {"logic": 120, "stem": 240, "ifollow": 240}
        _write_rows(directory / "logic.jsonl", puzzles(counts["logic"], 0, test))
        _write_rows(directory / "stem.jsonl", drawn(stem, counts["stem"], 0, test))
        _write_rows(directory / "ifollow.jsonl", drawn(ifollow, counts["ifollow"], 0, test))
    warm_start(options.output / "base", options.updates)


def _write_rows(path: Path, rows: list[Row]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def warm_start(directory: Path, updates: int, batch: int = 32, lr: float = 2e-3) -> None:
    """The quickstart's model, taught both ways of answering in all four tasks."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(MODEL_DIR, dtype=torch.float32, attn_implementation="eager")
    tokenizer = AutoTokenizer.from_pretrained(MODEL_DIR)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, betas=(0.9, 0.98), weight_decay=0.0)
    model.train()
    began, losses = time.perf_counter(), []
    for update, pairs in zip(range(updates), _batches(batch), strict=False):
        share = min((update + 1) / 20, 1.0, max(0.02, 2 * (updates - update) / updates))
        optimizer.param_groups[0]["lr"] = lr * share
        ids, labels = _padded([(tokenizer(text).input_ids, tokenizer(end).input_ids) for text, end in pairs])
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(input_ids=ids, use_cache=False).logits[:, :-1]
        kept = labels[:, 1:] != -100
        loss = cross_entropy(logits[kept].float(), labels[:, 1:][kept])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(float(loss.detach()))
        if (update + 1) % 50 == 0:
            print(
                f"update {update + 1}: loss {sum(losses[-50:]) / 50:.3f}, {time.perf_counter() - began:.0f} s",
                flush=True,
            )
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)


def _batches(batch: int) -> Iterator[list[tuple[str, str]]]:
    """(prompt, response) pairs, a quarter of each task."""
    from ulorl.problem import Problem, problem_id
    from ulorl.recipe import VerifyRecipe
    from ulorl.verify.tasks.scorer import Scorer

    rng, scorer = random.Random(derive_seed(0, "warm start")), Scorer(VerifyRecipe())
    logic = puzzles(600, 1, test=False)
    while True:
        pairs = draw_texts(batch // 4, MATH, rng)
        for draw in (stem, ifollow, lambda rng: rng.choice(logic)):
            for _ in range(batch // 4):
                row = draw(rng)
                text = row.get("problem") or row["prompt"]
                if is_test(text):
                    continue
                problem = Problem(problem_id(text), text, row.get("answer", ""), task=row["task"], extra=row)
                shown = scorer.prompted([problem])[0].problem
                pairs.append((f"{shown}\n", answer(row, rng) + "<eos>"))
        yield pairs


def _padded(pairs: list[tuple[list[int], list[int]]]) -> tuple[torch.Tensor, torch.Tensor]:
    width = max(len(prompt) + len(text) for prompt, text in pairs)
    ids, labels = torch.zeros((len(pairs), width), dtype=torch.long), torch.full((len(pairs), width), -100)
    for row, (prompt, text) in enumerate(pairs):
        end = len(prompt) + len(text)
        ids[row, :end] = torch.tensor(prompt + text)
        labels[row, len(prompt) : end] = torch.tensor(text)
    return ids, labels


def run(options: argparse.Namespace) -> None:
    """Every seed's run, the table, and the plot."""
    trained = []
    print("| seed | task | reward before | after | difference (95 % interval) | solved before | after | in training |")
    print("|---|---|---|---|---|---|---|---|")
    for seed in options.seeds:
        directory = options.output / f"seed{seed}"
        command = [sys.executable, "-m", "ulorl", "run", "recipes/mixed.toml", "--json", "--set", f"seed={seed}"]
        done = subprocess.run([*command, "--set", f"output={directory}"], check=True, stdout=subprocess.PIPE, text=True)
        steps = read_metrics(directory / "train" / "metrics.jsonl")
        trained.append(steps)
        for task, one in json.loads(done.stdout)["comparison"]["benchmarks"].items():
            reward, solved = one["measures"]["avg"], one["measures"]["pass@1"]
            low, high = reward["interval"]
            seen = [step[f"reward/{task}"] for step in steps if f"reward/{task}" in step]
            print(
                f"| {seed} | {task} | {reward['before']:.3f} | {reward['after']:.3f} "
                f"| {reward['difference']:+.3f} ({low:+.3f} to {high:+.3f}) "
                f"| {solved['before']:.1%} | {solved['after']:.1%} "
                f"| {sum(seen[:3]) / 3:.2f} → {sum(seen[-3:]) / 3:.2f} |",
                flush=True,
            )
    tasks = sorted({name for steps in trained for row in steps for name in row if name in REWARDS})
    curves = [curve(name.partition("/")[2], slot, trained, name) for slot, name in enumerate(tasks, start=1)]
    figure = Figure(
        "mixed_tasks", "Four tasks in one run", curves=curves, unit="reward while training, mean of 5 steps"
    )
    options.plots.mkdir(parents=True, exist_ok=True)
    (options.plots / f"{figure.name}.svg").write_text(standalone(figure))


def main() -> None:
    """Parse and go."""
    parser = argparse.ArgumentParser(description="Training on four tasks at once.")
    commands = parser.add_subparsers(required=True)
    preparing = commands.add_parser("prepare")
    preparing.add_argument("--updates", type=int, default=400)
    preparing.set_defaults(command=prepare, output=PREPARED)
    running = commands.add_parser("run")
    running.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    running.add_argument("--plots", type=Path, default=Path("docs/evidence"))
    running.add_argument("--output", type=Path, default=PREPARED, help="directory of the runs")
    running.set_defaults(command=run)
    options = parser.parse_args()
    options.command(options)


if __name__ == "__main__":
    main()

"""Memory and time of log-prob + entropy, forward and backward: tiled against plain, at a vocabulary of 151,936.

    python benchmarks/logprob_memory.py --tokens 4096 8192 16384 32768 --plain-up-to 8192

Each measurement is in a process of its own with one thread, so that its peak is its own; seconds are of the
processor, and the contestants alternate. The plain one (log-softmax of all logits) is left out above
``--plain-up-to``, where it does not fit; its peak grows in proportion to the tokens and is computed from that of the
largest that ran. Peaks are above what the inputs and an import of torch take, and hold the weight's gradient, which
both have. Prints a Markdown table and writes docs/evidence/logprob_memory.svg.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from ulorl.report.plot import Curve, Figure, standalone

VOCABULARY = 151_936
TEMPERATURE = 0.85
Measured = dict[str, float]


def measure(contestant: str, tokens: int, hidden: int) -> Measured:
    """Seconds of one forward and backward pass, and the peak above the inputs in GiB."""
    import torch

    from ulorl.train.logprobs import token_logprobs

    torch.set_num_threads(1)
    torch.manual_seed(0)
    hidden_NH = torch.randn(tokens, hidden, requires_grad=True)
    weight_VH = torch.randn(VOCABULARY, hidden).mul_(0.5 / hidden**0.5).requires_grad_()
    targets_N, slope_N = torch.randint(0, VOCABULARY, (tokens,)), torch.randn(tokens)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    if contestant == "tiled":
        logprobs_N, entropy_N = token_logprobs(hidden_NH, targets_N, weight_VH, temperature=TEMPERATURE)
    else:
        logprobs_NV = torch.log_softmax((hidden_NH @ weight_VH.T) / TEMPERATURE, dim=-1)
        with torch.no_grad():
            entropy_N = -(logprobs_NV.exp() * logprobs_NV).sum(dim=-1)
        logprobs_N = logprobs_NV.gather(1, targets_N.unsqueeze(1)).squeeze(1)
    (logprobs_N @ slope_N).backward()
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"seconds": seconds, "gib": peak / 1024**2, "check": float(logprobs_N.sum() + entropy_N.sum())}


def in_a_process(contestant: str, tokens: int, hidden: int) -> Measured:
    """`measure`, alone in a new process."""
    command = [sys.executable, __file__, "--one", contestant, "--tokens", str(tokens), "--hidden", str(hidden)]
    result: Measured = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return result


@dataclass(frozen=True)
class Size:
    """Of one number of tokens; without ``ratios`` the plain contestant did not run, and its peak is computed."""

    tokens: int
    plain_s: float | None
    tiled_s: float
    ratios: list[float]
    plain_gib: float
    tiled_gib: float

    def row(self) -> str:
        """One line of the table."""
        times = f"does not fit | {self.tiled_s:.1f} | "
        if self.plain_s is not None:
            spread = f"{statistics.median(self.ratios):.2f} ({min(self.ratios):.2f} to {max(self.ratios):.2f})"
            times = f"{self.plain_s:.1f} | {self.tiled_s:.1f} | {spread}"
        computed = "" if self.ratios else " (computed)"
        share = self.tiled_gib / self.plain_gib
        return f"| {self.tokens:,} | {times} | {self.plain_gib:.2f}{computed} | {self.tiled_gib:.2f} | {share:.3f} |"


def size(tokens: int, rounds: list[tuple[Measured | None, Measured]], last: Size | None) -> Size:
    """What the rounds of one number of tokens say; ``last`` is the size before, for a computed peak."""
    tiled_s = statistics.median(tiled["seconds"] for _, tiled in rounds)
    tiled_gib = max(tiled["gib"] for _, tiled in rounds)
    pairs = [(plain, tiled) for plain, tiled in rounds if plain is not None]
    if not pairs:
        assert last is not None, "the plain contestant must run at the first number of tokens"
        return Size(tokens, None, tiled_s, [], last.plain_gib * tokens / last.tokens, tiled_gib)
    for plain, tiled in pairs:
        assert abs(plain["check"] - tiled["check"]) <= 1e-4 * abs(plain["check"]), "the contestants disagree"
    plain_s = statistics.median(plain["seconds"] for plain, _ in pairs)
    plain_gib = max(plain["gib"] for plain, _ in pairs)
    return Size(
        tokens, plain_s, tiled_s, [tiled["seconds"] / plain["seconds"] for plain, tiled in pairs], plain_gib, tiled_gib
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, nargs="+", default=[4096, 8192, 16384, 32768])
    parser.add_argument("--plain-up-to", type=int, default=8192)
    parser.add_argument("--hidden", type=int, default=576, help="hidden size; 576 is SmolLM2-135M's")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--plots", type=Path, default=Path("docs/evidence"), help="directory of the plot")
    parser.add_argument("--one", choices=["tiled", "plain"], help="measure this alone, in this process")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.one, given.tokens[0], given.hidden)))
        return
    print(
        f"vocabulary {VOCABULARY:,}, hidden size {given.hidden}, fp32, one thread; "
        f"medians of {given.repeats} where both ran"
    )
    print("| tokens | plain s | tiled s | time tiled / plain (spread) | plain GiB | tiled GiB | memory tiled / plain |")
    print("|---|---|---|---|---|---|---|")
    sizes: list[Size] = []
    for tokens in sorted(given.tokens):
        rounds: list[tuple[Measured | None, Measured]] = []
        both = tokens <= given.plain_up_to
        for _ in range(given.repeats if both else 1):
            plain = in_a_process("plain", tokens, given.hidden) if both else None
            rounds.append((plain, in_a_process("tiled", tokens, given.hidden)))
        sizes.append(size(tokens, rounds, sizes[-1] if sizes else None))
        print(sizes[-1].row(), flush=True)
    given.plots.mkdir(parents=True, exist_ok=True)
    (given.plots / "logprob_memory.svg").write_text(standalone(figure(sizes)))


def figure(sizes: list[Size]) -> Figure:
    """Peaks against tokens; what is computed is dashed."""
    plain = [(float(one.tokens), one.plain_gib) for one in sizes if one.ratios]
    computed = [(float(one.tokens), one.plain_gib) for one in sizes if not one.ratios]
    tiled = [(float(one.tokens), one.tiled_gib) for one in sizes]
    curves = [Curve("plain", plain, 2, dots=True), Curve("tiled", tiled, 1, dots=True)]
    if computed:
        curves.append(Curve("computed", [plain[-1], *computed], 2, dashed=True))
    title = "Peak memory of log-prob and entropy"
    return Figure("logprob_memory", title, curves=curves, unit="GiB", x_label="tokens", log_x=True, log_y=True)


if __name__ == "__main__":
    main()

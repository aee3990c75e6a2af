"""Memory and time of log-prob + entropy, forward and backward: tiled against plain, at a vocabulary of 151,936.

    python benchmarks/logprob_memory.py --tokens 1024 2048 4096 8192 32768 --plain-up-to 4096

Each measurement runs in a process of its own, so that its peak is its own; the contestants alternate. The plain one
(log-softmax of all logits) is left out above ``--plain-up-to``, where it does not fit; its peak grows in
proportion to the tokens. Peaks are above what the inputs and an import of torch take.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time

VOCABULARY = 151_936
HIDDEN = 576
TEMPERATURE = 0.85


def measure(contestant: str, tokens: int) -> dict[str, float]:
    """Seconds of one forward and backward pass, and the peak above the inputs in GiB."""
    import torch

    from ulorl.train.logprobs import token_logprobs

    torch.set_num_threads(1)
    torch.manual_seed(0)
    hidden_NH = torch.randn(tokens, HIDDEN, requires_grad=True)
    weight_VH = torch.randn(VOCABULARY, HIDDEN).mul_(0.02).requires_grad_()
    targets_N, slope_N = torch.randint(0, VOCABULARY, (tokens,)), torch.randn(tokens)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    if contestant == "tiled":
        logprobs_N, entropy_N = token_logprobs(hidden_NH, targets_N, weight_VH, temperature=TEMPERATURE)
    else:
        logprobs_NV = torch.log_softmax((hidden_NH @ weight_VH.T) / TEMPERATURE, dim=-1)
        with torch.no_grad():
            entropy_N = -(logprobs_NV.exp() * logprobs_NV).sum(dim=-1)
        logprobs_N = logprobs_NV.gather(1, targets_N.unsqueeze(1)).squeeze(1)
    (logprobs_N @ slope_N).backward()
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"seconds": seconds, "gib": peak / 1024**2, "check": float(logprobs_N.sum() + entropy_N.sum())}


def in_a_process(contestant: str, tokens: int) -> dict[str, float]:
    """`measure`, alone in a new process."""
    command = [sys.executable, __file__, "--one", contestant, "--tokens", str(tokens)]
    result: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, nargs="+", default=[1024, 4096, 32768])
    parser.add_argument("--plain-up-to", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--one", choices=["tiled", "plain"])
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one, arguments.tokens[0])))
        return
    print(f"vocabulary {VOCABULARY}, hidden size {HIDDEN}, fp32, one thread; medians of {arguments.repeats}")
    print("| tokens | plain s | tiled s | time tiled / plain (spread) | plain GiB | tiled GiB | memory tiled / plain |")
    print("|---|---|---|---|---|---|---|")
    for tokens in arguments.tokens:
        rounds = []
        for _ in range(arguments.repeats):
            plain = in_a_process("plain", tokens) if tokens <= arguments.plain_up_to else None
            rounds.append((plain, in_a_process("tiled", tokens)))
        print(row(tokens, rounds), flush=True)


def row(tokens: int, rounds: list[tuple[dict[str, float] | None, dict[str, float]]]) -> str:
    """One line of the table."""
    tiled_s = statistics.median(tiled["seconds"] for _, tiled in rounds)
    tiled_gib = max(tiled["gib"] for _, tiled in rounds)
    pairs = [(plain, tiled) for plain, tiled in rounds if plain is not None]
    if not pairs:
        return f"| {tokens:,} | does not fit | {tiled_s:.1f} | | | {tiled_gib:.2f} | |"
    for plain, tiled in pairs:
        assert abs(plain["check"] - tiled["check"]) <= 1e-4 * abs(plain["check"]), "the contestants disagree"
    ratios = sorted(tiled["seconds"] / plain["seconds"] for plain, tiled in pairs)
    plain_s = statistics.median(plain["seconds"] for plain, _ in pairs)
    plain_gib = max(plain["gib"] for plain, _ in pairs)
    spread = f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
    return (
        f"| {tokens:,} | {plain_s:.1f} | {tiled_s:.1f} | {spread} | {plain_gib:.2f} | {tiled_gib:.2f} | "
        f"{tiled_gib / plain_gib:.3f} |"
    )


if __name__ == "__main__":
    main()

"""Accuracy of the rules on labelled pairs and responses: ``python benchmarks/verify_pairs.py FILE...``.

One line a file; ``--show fp|fn|undecided`` lists what disagrees, ``--last-number`` lets responses without a
stated answer count by their last number.
"""

from __future__ import annotations

import argparse

from ulorl.recipe import VerifyRecipe
from ulorl.verify.files import verify_file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--show", choices=["fp", "fn", "undecided"])
    parser.add_argument("--last-number", action="store_true")
    arguments = parser.parse_args()
    config = VerifyRecipe(last_number=arguments.last_number)
    print(f"{'file':38}     n accepted accuracy   fp   fn undec  pairs/s")
    for path in arguments.files:
        result = verify_file(path, config)
        rows = result["rows"]
        wrong = {
            "fp": [row for row in rows if row["label"] is False and row["equivalent"] is True],
            "fn": [row for row in rows if row["label"] is True and row["equivalent"] is False],
            "undecided": [row for row in rows if row["equivalent"] is None],
        }
        counts = " ".join(f"{len(wrong[kind]):4}" for kind in ("fp", "fn", "undecided"))
        accuracy = "-" if result["accuracy"] is None else f"{result['accuracy']:.4f}"
        print(
            f"{path.rsplit('/', 1)[-1]:38} {result['n']:5} {result['accepted']:8.4f} {accuracy:>8} "
            f"{counts} {result['pairs_per_second']:9.0f}"
        )
        for row in wrong.get(arguments.show, []):
            print(f"    {row['reference'][:70]!r} | {str(row['answer'])[:90]!r} | {row['rule']} {row['reason']}")


if __name__ == "__main__":
    main()

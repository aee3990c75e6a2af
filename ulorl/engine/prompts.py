"""From a problem to token ids and back, and from a model's name to its directory.

Invariants: special tokens are added once, whoever adds them (chat template or tokenizer); the problem text is
put in by plain replacement, so braces in it mean nothing; sampled token ids are never re-encoded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ulorl.errors import UserError
from ulorl.recipe import ModelRecipe

QUICKSTART = "quickstart"


def resolve_model(path: str, weights: bool = True, setting: str = "model.path") -> Path:
    """Directory of the model: "quickstart", a local directory, or a hub name (downloaded to the hub's cache; for a
    served model without its ``weights``). ``setting`` is what a message says is wrong.

    Raises UserError when it is none of these.
    """
    directory = _quickstart_directory() if path == QUICKSTART else Path(path).expanduser()
    if directory.is_dir():
        if not (directory / "config.json").is_file():
            raise UserError(f"{setting}: {directory} has no config.json, it is not a Hugging Face model directory")
        return directory
    if path == QUICKSTART:
        raise UserError(f"{setting}: the quickstart model is not at {directory}; install the package again")
    return _download(path, weights, setting)


def _quickstart_directory() -> Path:
    return Path(__file__).resolve().parents[1] / "quickstart" / "model"


def _download(name: str, weights: bool, setting: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    looked = f"{setting}: {name!r} is no directory here"
    try:
        patterns = ["*.json", "*.jinja", "*.model", "*.txt", *(["*.safetensors"] if weights else [])]
        return Path(snapshot_download(name, allow_patterns=patterns))
    except HFValidationError as error:
        raise UserError(f"{looked} and no hub name either (those look like organisation/model)") from error
    except Exception as error:  # the hub client raises errors of several libraries; all mean: not available
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UserError(f"{looked}, and the hub did not give it: {reason}") from error


def stop_token_ids(directory: Path) -> tuple[int, ...]:
    """Every end-of-sequence id that generation_config.json, config.json or the tokenizer names, ascending.

    Raises UserError when there is none: nothing would ever stop.
    """
    found: set[int] = set()
    for name in ("generation_config.json", "config.json"):
        file = directory / name
        if file.is_file():
            try:
                found |= _as_ids(json.loads(file.read_text(encoding="utf-8")).get("eos_token_id"))
            except (ValueError, AttributeError) as error:
                raise UserError(f"model.path: {file} is damaged, no JSON object: {error}") from error
    found |= _as_ids(_load_tokenizer(directory).eos_token_id)
    if not found:
        raise UserError(f"model.path: {directory} names no eos_token_id; add one to generation_config.json")
    return tuple(sorted(found))


def _as_ids(value: int | Sequence[int] | None) -> set[int]:
    if value is None:
        return set()
    return {value} if isinstance(value, int) else set(value)


def _load_tokenizer(directory: Path) -> Any:
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(directory, local_files_only=True)
    except (OSError, ValueError) as error:
        raise UserError(f"model.path: no tokenizer could be read from {directory}: {error}") from error


class Prompter:
    """Puts problems to a model as its recipe says. Holds the tokenizer, nothing else."""

    def __init__(self, model: ModelRecipe, directory: Path) -> None:
        """Read the tokenizer of ``directory``. Raises UserError when it lacks what the recipe needs."""
        self._model = model
        self._tokenizer = _load_tokenizer(directory)
        if model.chat and not self._tokenizer.chat_template:
            raise UserError(f"model.chat: the tokenizer of {directory} has no chat template; set chat = false")
        self.stop_ids: tuple[int, ...] = stop_token_ids(directory)
        pad = self._tokenizer.pad_token_id
        self.pad_id: int = self.stop_ids[0] if pad is None else int(pad)

    def encode(self, problem_text: str) -> tuple[int, ...]:
        """Token ids of the prompt of one problem. UserError where the chat template refuses it."""
        content = self._model.prompt.replace("{problem}", problem_text)
        if not self._model.chat:
            encoded = self._tokenizer(content).input_ids
            # Tokenizers of some base models close every text with EOS; a prompt is to be continued.
            while encoded and encoded[-1] in self.stop_ids:
                encoded = encoded[:-1]
            return tuple(encoded)
        from jinja2 import TemplateError

        messages = [{"role": "system", "content": self._model.system}] if self._model.system else []
        messages.append({"role": "user", "content": content})
        try:
            encoded = self._tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=True)
        except TemplateError as error:
            todo = "leave model.system empty and put it in model.prompt" if self._model.system else "set chat = false"
            raise UserError(f"model.chat: the model's chat template refuses the prompt ({error}); {todo}") from error
        # transformers 5 answers with a mapping, earlier ones with the list itself.
        return tuple(encoded["input_ids"] if isinstance(encoded, Mapping) else encoded)

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of sampled tokens, special tokens left out."""
        return str(self._tokenizer.decode(list(token_ids), skip_special_tokens=True))

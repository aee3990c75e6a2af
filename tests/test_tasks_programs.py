"""The program of a response of the task ``code``: in fences, in lists, in answer tags, with marks as text."""

from __future__ import annotations

import time

import pytest

from ulorl.verify.tasks.programs import program_of

ONE = "```python\nprint(1)\n```"
MARKS = "```python\nprint('<think>'+input()+' </think> ')\n```"
TEMPLATE = "P = '''\n<think>\n</think>\n'''"


@pytest.mark.parametrize(
    ("response", "program"),
    [
        (ONE, "print(1)"),
        ("First:\n```python\nprint(1)\n```\nBetter:\n```py\nprint(2)\n```\nIt prints\n```\n2\n```", "print(2)"),
        ("```\nprint(1)\n```\n```text\nno\n```", "print(1)"),
        ("```bash\npip install x\n```", None),
        ("~~~ Python\nprint('```')\n~~~", "print('```')"),
        ("````python\n'''\n```\n'''\n````", "'''\n```\n'''"),
        ("```python\nprint(1)", None),
        ("```python\nprint(1)\n```\n```python\nprint(2", "print(1)"),
        ("print(3)\n", "print(3)"),
        ("```python\n\n```", None),
        ("", None),
    ],
)
def test_the_program_of_a_response(response: str, program: str | None) -> None:
    assert program_of(response) == program


@pytest.mark.parametrize(
    ("response", "program"),
    [
        ("  ```python title=x\n  if 1:\n    pass\n  ```", "if 1:\n  pass"),
        ("1. Here:\n   ```python\n   if 1:\n       print(1)\n\n   print(2)\n   ```", "if 1:\n    print(1)\n\nprint(2)"),
        ("1. ```python\n   print(1)\n   ```\n2. Run it.", "print(1)"),
        ("- ```python\nprint(1)\n```", "print(1)"),
        ("\t```python\n\tif 1:\n\t\tpass\n\t```", "if 1:\n\tpass"),
        ("    ```python\n\tprint(1)\n    ```", "print(1)"),
        ("   ```python\nprint(1)\n```", "print(1)"),
        ("```n``` is read.\n\n```python\nprint(1)\n```", "print(1)"),
        ("```n``` is read.\nprint(1)", "```n``` is read.\nprint(1)"),
        ("```python\nprint(1)\n    ```\n", "print(1)"),
        ("```python\n'''\n    ```\n'''\n    ```\nThat is it.", "'''\n    ```\n'''"),
        ("~~~python `x`\nprint(1)\n~~~", "print(1)"),
        ("```python\n'''\n    ```\n    f()\n    ```\n'''\n```", "'''\n    ```\n    f()\n    ```\n'''"),
    ],
)
def test_fences_are_those_of_commonmark(response: str, program: str | None) -> None:
    assert program_of(response) == program


@pytest.mark.parametrize(
    ("response", "program"),
    [
        ("<answer>\nprint(1)\n</answer>", "print(1)"),
        ("So: <answer>print(1)</answer> or <answer>print(2)</answer>.", "print(2)"),
        (f"<answer>\n{ONE}\n</answer>", "print(1)"),
        (f"<answer>{ONE}</answer>", "print(1)"),
        ("<answer>\nprint('<answer>' + '</answer>')\n</answer>", "print('<answer>' + '</answer>')"),
        ("print('<answer>' + input() + '</answer>')", "print('<answer>' + input() + '</answer>')"),
        ("<answer> </answer>", None),
    ],
)
def test_without_a_fence_an_answer_tag_holds_the_program(response: str, program: str | None) -> None:
    assert program_of(response) == program


@pytest.mark.parametrize(
    ("response", "program"),
    [
        ("<think>```python\nprint(1)\n```</think>print(2)", "print(2)"),
        ("<think>```python\nprint(1)\n```", None),
        (f"<think>\n{ONE}\nhm", None),
        (f"<think>\n{MARKS}\nhm", None),
        (f"{ONE}\n<think>\n```python\nprint(2)\n```", "print(1)"),
        (f"a</think>{ONE}", "print(1)"),
        # drafts that are left open
        (f"<think>\n```python\nprint(0)\n</think>\nSo:\n{MARKS}", "print('<think>'+input()+' </think> ')"),
        (f"```python\nprint(0)\n</think>\nSo:\n{MARKS}", "print('<think>'+input()+' </think> ')"),
        ("<think>\n```python\nprint(0)\n</think>\n```\nprint(2)\n```", "print(2)"),
        ("```python\nprint(0)\n</think>\nprint(2)", "print(2)"),
        ("```python\nprint(0)\n</think>\nSo:\n```\nprint(2)\n```", "print(2)"),
        (f"```python\nprint(0)\n</think>\nExample:\n```\n1 2\n```\nSo:\n{ONE}", "print(1)"),
        ("<think>\n```python\nprint(0) </think>\nSo:\n```\nprint(2)\n```", "print(2)"),
        # marks as text
        (MARKS, "print('<think>'+input()+' </think> ')"),
        (f"{MARKS}<|im_end|>\n<|im_start|>user", "print('<think>'+input()+' </think> ')"),
        (f"```python\n{TEMPLATE}\n```", TEMPLATE),
        (f"<think>a</think>\n```python\n{TEMPLATE}\n```", TEMPLATE),
        ("```python\nprint('<s>'+input()+'</s>')\n```</s>", "print('<s>'+input()+'</s>')"),
        ("print('<s>'+input()+'</s>')", "print('<s>'+input()+'</s>')"),
        # turns
        (f"{ONE}<|im_end|>\n```python\nprint(2)\n```", "print(1)"),
        (f"<|im_start|>{ONE}<|im_end|>```python\nprint(2)\n```", "print(1)"),
        ("print(1)</s>print(2)", "print(1)"),
        (f"<|channel|>analysis<|message|>x<|end|><|start|>a<|channel|>final<|message|>{ONE}<|return|>", "print(1)"),
    ],
)
def test_thinking_and_other_turns_do_not_count_and_marks_in_programs_are_text(
    response: str, program: str | None
) -> None:
    assert program_of(response) == program


FRAGMENTS = ["```", "```python\n", "~~~\n```\n", "`" * 1000 + "\n", "a\n", "\t", "- ", "<think>", "</think>", "</s>"]
FRAGMENTS += ["<answer>", "```\n</think>\n", "```x</think>\n", "<think>\n```\n</think>\n"]
FRAGMENTS += ["~~~\n</think>\n```\n</think>\n```x\n"]


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_finding_the_program_is_linear(fragment: str) -> None:
    text = fragment * (2_000_000 // len(fragment))
    start = time.monotonic()
    program_of(text)
    assert time.monotonic() - start < 10


def test_many_drafts_that_are_left_open_take_linear_time() -> None:
    drafts = "".join("`" * (1500 - number) + "\n</think>\n" for number in range(1400))
    start = time.monotonic()
    assert program_of(drafts + "```\n" * 300_000 + "`" * 2000 + "x") is None
    assert time.monotonic() - start < 10

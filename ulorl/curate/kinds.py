r"""Third step: what kind of problem is it, and is it of a kind that has one short answer?

Rules only, tried from the most to the least certain: multiple choice, several parts, proof, yes/no, missing
figure, open-ended; else short answer. Invariants: only the text and the reference decide; every rule is
linear in the text and looks at its last 20,000 characters at most.

Does not rewrite (``rewrite``): multiple choice and yes/no problems go on with their kind in ``Problem.kind``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal

from ulorl.curate.answers import option_letter, same_text, short_answer
from ulorl.curate.enumeration import Enumeration, find_enumerations
from ulorl.curate.features import without_drawings
from ulorl.curate.reasons import drop
from ulorl.curate.result import StepResult
from ulorl.curate.tasks import asking_paragraphs, asks, question_sentences, starts_task
from ulorl.problem import Dropped, Problem

Kind = Literal["short_answer", "multi_part", "multiple_choice", "proof", "true_false", "open_ended", "missing_figure"]
DROPPED_KINDS: tuple[Kind, ...] = ("multi_part", "proof", "open_ended", "missing_figure")

_MAX_CHARS = 20_000
_WHICH = re.compile(
    r"\b(?:which|what) (?:\w+ ){0,3}(?:of|among) (?:the )?(?:following|these|those|statements|propositions)\b"
    r"|\bamong the (?:following|\w+ statements)\b|\b(?:correct|true|false|"
    r"incorrect) (?:\w+ ){0,2}(?:statement|proposition|"
    r"conclusion|option|choice|answer)s?\b|\bfollowing (?:\w+ ){0,3}(?:is|are) (?:\w+ )?(?:correct|true|"
    r"false|incorrect)"
    r"|\bwhich (?:\w+ ){0,2}(?:statement|conclusion|option|choice|proposition)s?\b|(?:serial|"
    r"sequence) numbers?\b"
    r"|\u4e0b\u5217|\u4ee5\u4e0b",
    re.IGNORECASE,
)
_CONDITIONS = re.compile(
    r"(?:satisf\w+|conditions?|properties|property|rules?|such that|statements?|following holds?|facts?|"
    r"steps|operations?|"
    r"moves?|defined|axioms|ways|where|if|constraints?|clues|requirements?|information|types?|"
    r"known that|criteria|game|has|have)"
    r"[^.?!]{0,80}$",
    re.IGNORECASE,
)
_WHICH_WORDS = (
    "which",
    "among",
    "correct",
    "true",
    "false",
    "following",
    "number",
    "\u4e0b\u5217",
    "\u4ee5\u4e0b",
    "what",
)
_PROOF_WORDS = ("prove", "show", "demonstrate", "verify", "\u8bc1\u660e", "\u6c42\u8bc1")
_FIGURE_WORDS = (
    "diagram",
    "figure",
    "picture",
    "drawing",
    "illustrat",
    "image",
    "shown",
    "depict",
    "drawn",
    "graph",
    "seen",
)
_PROOF = re.compile(
    r"(?:^|[.,;:?!]\s{0,3}|\n\s{0,9}|\b(?:then|and|to|also|please|\)) )"
    r"(?:\(?prove|show|demonstrate|verify) (?:that|the|this|:|if|for|using|there|also)|^prove\b|\bprove[:,]|"
    r"(?:^|[.;:?!,]\s{0,3}|\n\s{0,9})prove\b|\u8bc1\u660e|\u6c42\u8bc1",
    re.IGNORECASE,
)
_VALUE_ASKED = re.compile(
    r"\b(?:find|determine|calculate|compute|evaluate|what (?:is|are)|how many|how much)\b", re.IGNORECASE
)
_YES_NO = re.compile(
    r"^(?:[^.?!]{0,160}[,:] )?(?:then |so |but |and )?(?:is|are|was|were|does|do|did|can|could|will|"
    r"would|must|has|have|"
    r"should|may)(?! not\b) ",
    re.IGNORECASE,
)
_WHETHER = re.compile(
    r"^(?:[^.?!]{0,160}[,:] )?(?:prove or disprove|true or false|is it true|(?:determine|decide|state|"
    r"judge|verify|find out)"
    r" (?:whether|if))\b",
    re.IGNORECASE,
)
_YES_NO_ANSWER = re.compile(
    r"^\W*(?:\\(?:text|textbf|mathrm)\s?\{)?\W*(?:yes|no|true|false|not? (?:possible|exists?|"
    r"necessarily)|impossible|possible|"
    r"it is (?:not )?(?:possible|true)|cannot|\u662f|\u5426)\b",
    re.IGNORECASE,
)
_IMAGE = re.compile(r"!\[[^\]]{0,200}\]\(|<image>|<img\b|\\includegraphics|\[image\]", re.IGNORECASE)
_FIGURE = re.compile(
    r"\b(?:in|from|see|on) the (?:\w+ ){0,3}(?:diagram|figure|picture|drawing|illustration|image|"
    r"graph shown)\b"
    r"|\bas (?:is )?(?:shown|illustrated|pictured|depicted|drawn|seen)\b(?! that)"
    r"|\b(?:shown|pictured|depicted|drawn|illustrated) (?:below|above|here|to the right|at right|in the)\b"
    r"|\bthe (?:diagram|figure|picture|illustration)s? (?:below|above|shows?|at right|to the right)\b"
    r"|\b(?:diagram|figure|picture|illustration) (?:below|above|shows)\b",
    re.IGNORECASE,
)
_DRAWING = re.compile(r"\[asy\]|\\begin\{(?:tikzpicture|picture|array|tabular)|\|\s?-{3,}|\\hline", re.IGNORECASE)
_UNNAMED = re.compile(
    r"\b(?:shaded|gray|grey|coloured|colored|dark(?:er)?|marked|blackened|"
    r"unshaded) (?:\w+ ){0,2}(?:regions?|areas?|parts?|"
    r"portions?|triangles?|squares?|figures?|angles?|segments?|sections?|circles?|rectangles?|cells?)\b|"
    r"\bquestion mark\b",
    re.IGNORECASE,
)
_ASKED_NAME = re.compile(
    r"(?:value|measure|length|size|degrees?|area|number) (?:\w+ ){0,6}?(?:of|by|for) (?:angle )?"
    r"\$?(?:\\\()?\s?(?:\\angle\s?)?([a-zA-Z])\s?(?:\\\))?\$?\s?(?:is|\?|:|=|,|\.|in\b|$)",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"(?:^|[.;:?!]\s{0,3}|\n\s{0,9})(?:explain (?:how|why|what)|describe (?:how|a|an|all the ways)|"
    r"construct\b|give an? "
    r"(?:\w+ )?example|divide (?:them|it|the (?!sum|product|result))|write (?:\w+ ){1,4}several|draw\b|"
    r"sketch\b|arrange\b|"
    r"design\b|propose\b|find an? (?:\w+ )?(?:nonzero |non-zero )?(?:polynomial|function|example|"
    r"sequence|set|number) "
    r"(?:\S+ )?such that|come up with|(?:please )?(?:write|list) (?:down )?(?:any|one|an example))",
    re.IGNORECASE,
)
_CLOSED = re.compile(
    r"\bhow (?:many|much|long|far)\b|[?]|_{3}|\\_|\\qquad|\b(?:number|value|ratio|length|area|sum|part|"
    r"total|minimum|maximum|probability) (?:of|that)\b"
    r"|\b(?:as the|the final) answer\b|\banswer in\b|\bthe (?:larger|smaller|total|ratio)\b|\bis\W*$",
    re.IGNORECASE,
)


def kinds(problems: list[Problem]) -> StepResult:
    """Write the kind of every row; rows of a kind without one short answer are dropped."""
    kept: list[Problem] = []
    dropped: list[Dropped] = []
    notes: dict[str, int] = {}
    for problem in problems:
        kind, evidence = classify(problem.problem, problem.answer, problem.original_answer)
        problem = replace(problem, kind=kind)  # noqa: PLW2901
        if kind in DROPPED_KINDS:
            dropped.append(drop(problem, "kinds", kind, evidence))
        else:
            notes[f"kind {kind}"] = notes.get(f"kind {kind}", 0) + 1
            kept.append(problem)
    return StepResult(kept, dropped, notes=notes)


def classify(problem: str, answer: str = "", original_answer: str | None = None) -> tuple[Kind, str]:
    """(kind, the evidence for it)."""
    text = without_drawings(problem[-_MAX_CHARS:]).strip()
    reference = original_answer or answer or ""
    enumerations = find_enumerations(text)
    evidence = choice_evidence(text, reference, enumerations)
    if evidence:
        return "multiple_choice", evidence
    evidence = _several_answers(reference, enumerations) or _several_parts(text, enumerations)
    if evidence:
        return "multi_part", evidence
    if _mentions(text, _PROOF_WORDS) and _PROOF.search(text) and "prove or disprove" not in text.lower():
        outside = _PROOF.sub(" ", text)
        if not (_VALUE_ASKED.search(outside) and answer):
            return "proof", "asks for a proof and for no value"
    if _is_yes_no(text, answer):
        return "true_false", "a yes/no question without another question"
    evidence = "" if len(text) < len(problem.strip()) else _missing_figure(text)
    if evidence:
        return "missing_figure", evidence
    found = _OPEN.search(text)
    if found and not _VALUE_ASKED.search(text) and not _CLOSED.search(text):
        return "open_ended", f"asks for one of many answers: {found[0].strip()!r}"
    return "short_answer", ""


def _mentions(text: str, words: tuple[str, ...]) -> bool:
    """A cheap test before a dear one: whether any of the words is in ``text``, in any case."""
    lowered = text.lower()
    return any(word in lowered for word in words)


def options(enumerations: list[Enumeration]) -> Enumeration | None:
    """The list of lettered options, if there is one: three or more, no tasks, nothing asked after it."""
    for enumeration in reversed(enumerations):
        if enumeration.family not in ("ALPHA", "alpha") or len(enumeration.parts) < 3:
            continue
        if any(starts_task(part) for part in enumeration.parts):
            continue
        if any(asks(part) for part in enumeration.parts[-1:]) or not enumeration.preamble:
            continue
        if all(enumeration.parts) and max(len(part) for part in enumeration.parts) <= 400:
            return enumeration
    return None


def choice_evidence(text: str, reference: str, enumerations: list[Enumeration]) -> str:
    """Why the problem is multiple choice; empty if it is not."""
    lettered = options(enumerations)
    if lettered is not None and (
        lettered.family == "ALPHA" or any(same_text(part, short_answer(reference)[0]) for part in lettered.parts)
    ):
        return f"options {', '.join(lettered.labels)}"
    which = _WHICH.search(text) if _mentions(text, _WHICH_WORDS) else None
    if which:
        for enumeration in enumerations:
            statements = len(enumeration.parts) >= 3 and enumeration.family not in ("alpha", "ALPHA", "glued")
            if statements and not any(starts_task(part) for part in enumeration.parts[:-1]):
                return f"{which[0]!r} over the numbered statements {', '.join(enumeration.labels)}"
        if re.fullmatch(r"[A-H](?:\s?,\s?[A-H])*", reference.strip()) and len(reference.strip()) > 1:
            return f"{which[0]!r}, and the reference {reference!r} names options"
    if option_letter(reference) and len(reference) > 1 and re.match(r"^\W*(?:\\\w+\s?\{)?\W*[A-E]\s?[).]", reference):
        return f"the reference {reference[:40]!r} names an option"
    return ""


def _several_answers(reference: str, enumerations: list[Enumeration]) -> str:
    for answered in find_enumerations(reference[:_MAX_CHARS]):
        for enumeration in enumerations:
            if enumeration.family == answered.family and len(answered.parts) >= 2 and not answered.preamble:
                return f"the reference answers the parts {', '.join(answered.labels)}"
    return ""


def _several_parts(text: str, enumerations: list[Enumeration]) -> str:
    for enumeration in enumerations:
        tasks = sum(starts_task(part) for part in enumeration.parts)
        listed = ", ".join(enumeration.labels)
        if enumeration.family == "glued":
            return f"several problems in one text: {listed}"
        if tasks >= 2:
            return f"{tasks} of the parts {listed} ask something"
        if _preamble_asks(enumeration):
            return f"one task put to each of the parts {listed}"
    paragraphs = asking_paragraphs(text)
    if len(paragraphs) >= 2:
        return f"{len(paragraphs)} paragraphs ask something"
    questions = question_sentences(text)
    if len(questions) >= 2:
        return f"{len(questions)} questions: {questions[-1][:80]!r}"
    return ""


def _preamble_asks(enumeration: Enumeration) -> bool:
    """Calculate: (1) .. (2) .. - a task before a list whose parts are bare expressions, and none after it."""
    if any(starts_task(part) for part in enumeration.parts):
        return False
    if enumeration.family in ("circled", "ALPHA"):
        return False
    preamble = re.sub(r"\([^()]{0,200}\)$", "", enumeration.preamble.rstrip(" \n*$")).rstrip()
    if not preamble:
        return all(len(part) < 300 for part in enumeration.parts) and enumeration.family in (
            "decimal",
            "alpha",
        )
    last = re.split(r"(?<=[.?!])\s", preamble)[-1]
    if not starts_task(last, strict=True) or asks(enumeration.parts[-1]):
        return False
    if preamble.endswith("?"):
        return bool(re.search(r"following (?:conditions|cases|situations|expressions|equations)", last, re.IGNORECASE))
    return (preamble[-1:] in ":;,\uff1a" and not _CONDITIONS.search(last)) or not re.search(r"[.?!:,]$", preamble)


def _is_yes_no(text: str, answer: str) -> bool:
    sentences = [part.strip() for part in re.split(r"(?<=[.?!])\s|\n", text) if part.strip()]
    yes_no = [
        sentence
        for sentence in sentences
        if _WHETHER.match(sentence) or (sentence.endswith("?") and _YES_NO.match(sentence))
    ]
    if _YES_NO_ANSWER.match(answer or ""):
        return True
    if not yes_no or (answer and re.search(r"\d", answer) and len(answer) < 60):
        return False
    others = [sentence for sentence in sentences if sentence not in yes_no and starts_task(sentence, strict=True)]
    return not others and not re.search(r"\bhow (?:many|much)\b|\bif so\b", text, re.IGNORECASE)


def _missing_figure(text: str) -> str:
    if not _mentions(text, _FIGURE_WORDS) or _DRAWING.search(text):
        return ""
    figure = _FIGURE.search(text)
    if figure is None:
        return ""
    image = _IMAGE.search(text)
    if image:
        return f"{figure[0]!r}, and the image {image[0]!r} is not in the text"
    asked = _ASKED_NAME.search(text)
    if asked:
        name = asked[1]
        before = text[: asked.start(1)]
        if not re.search(
            rf"(?<![A-Za-z\\]){re.escape(name)}(?![A-Za-z])\s?(?:\^|=|\+|-|[(]|\\|$|\S)",
            _without_points(before, name),
        ):
            return f"{figure[0]!r}, and {name} is defined nowhere in the text"
    if _UNNAMED.search(text) and len(text) < 300:
        return f"{figure[0]!r}, and a part that only the figure shows"
    return ""


def _without_points(text: str, name: str) -> str:
    """``text`` without the words in which a single letter is an article or a pronoun."""
    return re.sub(r"\b(?:a|I|A)\b(?=\s[a-z])", " ", text) if name in "aAI" else text

"""The closed set of constraints: each with the settings it needs and how it is checked.

The names and settings are IFEval's (arXiv 2311.07911), so that rows made for it can be used; the checks are our own.
They differ where IFEval's depend on NLTK's models (sentences, words in capitals) or on a language detector that draws
at random (``language``), and where it takes a keyword for a regular expression: here a keyword is the text it is.

Invariants: a check is a function of the response and the settings; linear in the response; never raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ulorl.verify.tasks.constraints import text as parts
from ulorl.verify.tasks.constraints.language import language, languages

RELATIONS = ("at least", "less than")
YES_NO = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Constraint:
    """``needs``: each setting with its type; "relation" is one of RELATIONS, "texts" a list of texts, "language" a
    code."""

    needs: Mapping[str, str]
    check: Callable[[str, Settings], bool]

    def fault(self, settings: Settings) -> str | None:
        """What is wrong with the settings of a row."""
        unknown = next((name for name in settings if name not in self.needs), None)
        if unknown is not None:
            return f"no setting {unknown!r}; it takes {', '.join(self.needs) or 'none'}"
        for name, kind in self.needs.items():
            if name not in settings:
                return f"the setting {name} is missing"
            if not _fits(settings[name], kind):
                return f"{name} is {settings[name]!r}; give {_KINDS[kind]}"
        return None


_KINDS = {
    "number": "a whole number, 0 or more",
    "text": "a text",
    "letter": "one character",
    "texts": "a list of texts",
    "relation": " or ".join(map(repr, RELATIONS)),
    "language": "the code of a language, such as 'de'",
}


def _fits(value: Any, kind: str) -> bool:
    match kind:
        case "number":
            whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            return whole and not isinstance(value, bool) and value >= 0
        case "texts":
            return (
                isinstance(value, list) and bool(value) and all(isinstance(one, str) and one.strip() for one in value)
            )
        case "relation":
            return value in RELATIONS
        case "letter":
            return isinstance(value, str) and len(value) == 1
        case "language":
            return isinstance(value, str) and value.partition("-")[0] in languages()
        case _:
            return isinstance(value, str) and bool(value.strip())


def _relation(count: int, wanted: Any, relation: str) -> bool:
    return count < wanted if relation == "less than" else count >= wanted


def _keywords(response: str, settings: Settings) -> bool:
    return all(word.casefold() in response.casefold() for word in settings["keywords"])


def _frequency(response: str, settings: Settings) -> bool:
    count = response.casefold().count(settings["keyword"].casefold())
    return _relation(count, settings["frequency"], settings["relation"])


def _forbidden(response: str, settings: Settings) -> bool:
    words = (rf"(?<!\w){re.escape(word)}(?!\w)" for word in settings["forbidden_words"])
    return not any(re.search(word, response, re.IGNORECASE) for word in words)


def _letters(response: str, settings: Settings) -> bool:
    count = response.lower().count(settings["letter"].lower())
    return _relation(count, settings["let_frequency"], settings["let_relation"])


def _language(response: str, settings: Settings) -> bool:
    return language(response) == settings["language"].partition("-")[0]


def _sentences(response: str, settings: Settings) -> bool:
    return _relation(len(parts.sentences(response)), settings["num_sentences"], settings["relation"])


def _paragraphs(response: str, settings: Settings) -> bool:
    found = parts.starred_paragraphs(response)
    return all(found) and len(found) == settings["num_paragraphs"]


def _words(response: str, settings: Settings) -> bool:
    return _relation(len(parts.words(response)), settings["num_words"], settings["relation"])


def _nth_paragraph(response: str, settings: Settings) -> bool:
    found, number = parts.paragraphs(response), int(settings["nth_paragraph"])
    if len(found) != settings["num_paragraphs"] or not 1 <= number <= len(found):
        return False
    return parts.first_word(found[number - 1]) == settings["first_word"].lower()


def _placeholders(response: str, settings: Settings) -> bool:
    return len(re.findall(r"\[[^\[\]\n]*\]", response)) >= settings["num_placeholders"]


def _postscript(response: str, settings: Settings) -> bool:
    letters = (re.escape(one) for one in settings["postscript_marker"].lower() if not one.isspace())
    return re.search(r"\s?".join(letters), response.lower()) is not None


def _bullets(response: str, settings: Settings) -> bool:
    return parts.bullets(response) == settings["num_bullets"]


def _highlights(response: str, settings: Settings) -> bool:
    return parts.highlights(response) >= settings["num_highlights"]


def _sections(response: str, settings: Settings) -> bool:
    divider = rf"\s?{re.escape(settings['section_spliter'].strip())}\s?\d{{1,9}}\s?"
    return len(re.findall(divider, response)) >= settings["num_sections"]


def _json(response: str, settings: Settings) -> bool:
    bare = response.strip()
    for fence in ("```json", "```Json", "```JSON", "```"):
        bare = bare.removeprefix(fence)
    try:
        json.loads(bare.removesuffix("```").strip())
    except (ValueError, RecursionError):
        return False
    return True


def _title(response: str, settings: Settings) -> bool:
    return any(title.strip("<> ") for title in re.findall(r"<<[^\n<>]+>>", response))


def _two(response: str, settings: Settings) -> bool:
    found = [part.strip() for part in response.split("******")]
    if found and not found[0]:
        found = found[1:]
    if found and not found[-1]:
        found = found[:-1]
    return len(found) == 2 and all(found) and found[0] != found[1]


def _repeats(response: str, settings: Settings) -> bool:
    return response.strip().lower().startswith(settings["prompt_to_repeat"].strip().lower())


def _ends(response: str, settings: Settings) -> bool:
    return response.strip().strip('"').lower().endswith(settings["end_phrase"].strip().lower())


def _capitals(response: str, settings: Settings) -> bool:
    count = parts.capital_words(response)
    return _relation(count, settings["capital_frequency"], settings["capital_relation"])


CONSTRAINTS = {
    "keywords:existence": Constraint({"keywords": "texts"}, _keywords),
    "keywords:frequency": Constraint({"keyword": "text", "frequency": "number", "relation": "relation"}, _frequency),
    "keywords:forbidden_words": Constraint({"forbidden_words": "texts"}, _forbidden),
    "keywords:letter_frequency": Constraint(
        {"letter": "letter", "let_frequency": "number", "let_relation": "relation"}, _letters
    ),
    "language:response_language": Constraint({"language": "language"}, _language),
    "length_constraints:number_sentences": Constraint({"num_sentences": "number", "relation": "relation"}, _sentences),
    "length_constraints:number_paragraphs": Constraint({"num_paragraphs": "number"}, _paragraphs),
    "length_constraints:number_words": Constraint({"num_words": "number", "relation": "relation"}, _words),
    "length_constraints:nth_paragraph_first_word": Constraint(
        {"num_paragraphs": "number", "nth_paragraph": "number", "first_word": "text"}, _nth_paragraph
    ),
    "detectable_content:number_placeholders": Constraint({"num_placeholders": "number"}, _placeholders),
    "detectable_content:postscript": Constraint({"postscript_marker": "text"}, _postscript),
    "detectable_format:number_bullet_lists": Constraint({"num_bullets": "number"}, _bullets),
    "detectable_format:constrained_response": Constraint(
        {}, lambda response, _: any(one in response for one in YES_NO)
    ),
    "detectable_format:number_highlighted_sections": Constraint({"num_highlights": "number"}, _highlights),
    "detectable_format:multiple_sections": Constraint({"section_spliter": "text", "num_sections": "number"}, _sections),
    "detectable_format:json_format": Constraint({}, _json),
    "detectable_format:title": Constraint({}, _title),
    "combination:two_responses": Constraint({}, _two),
    "combination:repeat_prompt": Constraint({"prompt_to_repeat": "text"}, _repeats),
    "startend:end_checker": Constraint({"end_phrase": "text"}, _ends),
    "startend:quotation": Constraint(
        {}, lambda response, _: len(response.strip()) > 1 and response.strip()[0] == response.strip()[-1] == '"'
    ),
    "change_case:capital_word_frequency": Constraint(
        {"capital_frequency": "number", "capital_relation": "relation"}, _capitals
    ),
    "change_case:english_capital": Constraint({}, lambda response, _: response.isupper()),
    "change_case:english_lowercase": Constraint({}, lambda response, _: response.islower()),
    "punctuation:no_comma": Constraint({}, lambda response, _: "," not in response),
}
"""By ``instruction_id``."""

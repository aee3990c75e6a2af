"""The value that a sentence of a response states: "The minimum is **5**, attained at x = 2" states 5.

Nothing is parsed: mathematics is masked so that words and punctuation inside it do not count, and what is
left is matched as prose. Two strengths. `value_of` reads what stands where an answer is announced, and gives
the text back where it sees no sentence. `conclusion` reads the last sentences of a response that announces
nothing, and gives None unless exactly one value is concluded. Texts are bounded, so time is too.
"""

from __future__ import annotations

import re

MAX_SENTENCE = 2000
MAX_LOOK_BACK = 3

_MASK, _DISPLAY_MASK = "\x00", "\x01"
_DELIMITER = re.compile(r"\\.|\$\$?")
_CLOSING = {"$": "$", "$$": "$$", "\\(": "\\)", "\\[": "\\]"}
_MONEY = re.compile(r"\$\d[^\\]*?[ ,][a-z]{2,} [^\\]*")
_WORD = re.compile(r"(?<![A-Za-z\\])[A-Za-z]{2,}|[\u4e00-\u9fff]")

_NUMBER = r"(?:\d(?:[\d,]{0,40}\d)?(?:\.\d{1,40})?|\.\d{1,40})(?:/\d{1,40})?"
# Atomic, because a comma may be inside a number or between two: "2,2,2,2" has one reading here, not 2^n.
_VALUE = rf"(?>[-−+~≈$€£¥(\[]{{0,3}}(?:(?<=[(\[]) )?(?:\x00+|\x01+|{_NUMBER})(?: ?[)\]])?(?:\\?%|°)?)"
_VALUES = re.compile(_VALUE)
_LIST = rf"{_VALUE}(?: {{0,3}}(?:,| and|, and| or|, or) {{0,4}}{_VALUE})*"
_STATED = re.compile(rf"(?P<values>{_LIST})(?P<tail>(?: [A-Za-z²³./]+){{0,12}})[ .!:]*")
_COPULA = re.compile(
    r"(?:\b(?:is|are|was|were|be|equals|becomes|yields|gives)\b|=)\)?:?"
    r"(?: (?:therefore|thus|then|also|exactly|precisely|simply|just|only|approximately|about|equal to|given by"
    r"|as follows|when|indeed|now|either)\b)*[:,]?\s{0,4}"
)
_SUBJECT = re.compile(
    rf"(?P<value>{_LIST}|[A-Za-z][\w' -]{{0,40}}?) (?:is|are) (?:the|our|my|a|an)\b[\w\x00\x01 ]{{0,60}}?"
    r"\b(?:answers?|solutions?|results?)\b[ .!]*$"
)
_REMARK = re.compile(
    r"[,;] ?(?:but |and )?(?:not|attained|achieved|reached|when|because|since|which|as|rather than|occurring"
    r"|obtained|with equality|where equality|assuming)\b"
    r"|[ ](?:because|since)\b"
    r"| ?\((?:when|attained|achieved|reached|at|since|because|which|as|rounded|to the nearest|approx|from|with)\b"
    r"[^()]{0,400}\)[ .]*$"
)
_OPENER = re.compile(
    r"\W{0,6}(?:therefore|thus|hence|so|consequently|accordingly|finally|in conclusion|conclusion|in summary"
    r"|to conclude|in total|altogether|it follows that|we conclude that|因此|所以|故|综上|于是|从而|总之)\W",
    re.IGNORECASE,
)
_COUNTED = re.compile(rf"\s{{0,4}}(?P<value>{_VALUE})(?: [A-Za-z]+){{2}}")
_COUNTED_IN_WORDS = re.compile(
    r"\s{0,4}(?P<value>(?:Two|Three|Four|Five|Six|Seven|Eight|Nine|Ten|Eleven|Twelve|[A-Z][a-z]{2,5}teen"
    r"|(?:Twen|Thir|For|Fif|Six|Seven|Eigh|Nine)ty)(?: [a-z]+)) [a-z]+"
)
_DOUBTFUL = re.compile(
    r"\b(?:not|cannot|can't|isn't|no|nor|neither|maybe|perhaps|might|may|could|suppose|assum\w*|unless|guess|if|unsure"
    r"|let|check|verify|substitut\w*|need to|want to|must)\b|\?|不",
    re.IGNORECASE,
)
_OPERATION = re.compile(
    r"\b(?:roots?|squares?|cubes?|half|twice|double|triple|thrice|times|plus|minus|sum|product|difference|quotient|ratio"
    r"|powers?|reciprocal|multiples?|remainder|modulo|factorial|log\w*|sine|cosine|tangent|inverse|negative|between)\b"
    r"(?: (?:and|the|a|an|of|to|by|from|root|as|many|much|than))* ?$",
    re.IGNORECASE,
)
"""What stands in front of a number that is not the value itself: "the square root of 16"."""
_NO_VALUE = re.compile(
    r"\b(?:except|besides|other than|(?:larg|great|bigg|small|low|high|few)er|(?:less|more) than|exceeds?|above|below"
    r"|beyond|divisible|multiples?|impossible|fails?|differs?|different)\b"
)
"""What is said of a number that is not the value: "larger than 5"."""
_CHINESE_OPERATION = re.compile(r"一半|倍|平方|立方|根|分之|差|积|商|余|负")
_CONDITIONAL = re.compile(
    r"\b(?:if|unless|provided|except|otherwise|or|of|times|plus|minus|squared|cubed|modulo|less|fewer)\b"
)
_PREPOSITION = re.compile(
    r"(?:#|\b(?:in|after|for|over|within|from|by|at|on|per|with|between|under|until|every|each|than|during|when|where"
    r"|first|next|last|step|day|week|month|year|age) (?:the |a |all |these |those |this |of |about )?|[/^_])$",
    re.IGNORECASE,
)
_NOUN_END = re.compile(
    r" of (?:the|all|his|her|their|its|[A-Z])"
    r"| (?:in|on|at|for|after|before|from|with|when|while|during|that|who|which|because|he|she|they|it) [A-Za-z]"
    r"|(?<=[a-z]) (?:to [A-Za-z]|and (?!an?\b|half|quarter|one|two|t[hwe]|f[io]|si|se|ei|ni|el|hu)[a-z])"
    r"| (?:are|were|is|was|will|would|have|has|had|can|could|did|do|does) [A-Za-z]"
    r"| (?:in total|left|old|tall|long|wide|high|deep|east|west|north|south|away|altogether|total|each|remaining|later"
    r"|ago|together|now)\b"
)
_NOUN = re.compile(r"(?: [A-Za-z²³/]+){1,4}")
_DANGLING = re.compile(r"(?: (?:in|at|on|of|for|by|with|and|to|from|or))+$")
_BOLD = re.compile(r"(?<![\w)])\*\*|\*\*(?![\w(])|`")
_BRACKETED = re.compile(r"\([^()]*\)")
_SEVERAL = re.compile(r"\b(?:and|or)\b")
_CHAIN = re.compile(r"(?<![<>=!\\])=(?!=)")
_COUNTING = re.compile(r"(?:at least|at most|more than|less than|fewer than|up to|over|under) ?$", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?](?=\s|$|\*)|。|\n\s*\n|```\s|(?<=\x01)\s+(?=[A-Z])")
_COMPLETE = (".", "!", "。", "$", "\\)", "\\]", "*", "}", "）", ")")
_CHINESE = re.compile(r"(?:是|为|等于|得|共|有|[:：=])(?=[^是为等于得共有:：=]{0,80}$)")
_CHINESE_VALUE = re.compile(rf"[^\d\x00\x01-]{{0,6}}(?P<value>{_LIST}[\u4e00-\u9fff]{{0,4}})[。. ]*")


def mask(text: str) -> str:
    r"""``text`` with every character of ``$...$``, ``\(...\)`` and ``\[...\]`` replaced; the same length."""
    parts: list[str] = []
    position = opened = 0
    closing = ""
    for match in _DELIMITER.finditer(text):
        token = match[0]
        if closing and token == closing:
            inside = text[opened : match.end()]
            if token != "$" or not _MONEY.fullmatch(inside):  # "$5 and the other pays $7"
                parts += [text[position:opened], (_MASK if closing in ("$", "\\)") else _DISPLAY_MASK) * len(inside)]
                position = match.end()
                closing = ""
            else:
                opened = match.start()
        elif not closing and token in _CLOSING:
            opened, closing = match.start(), _CLOSING[token]
    return "".join([*parts, text[position:]])


def first_sentence(text: str) -> str:
    """Up to the first full stop outside mathematics."""
    end = _SENTENCE_END.search(mask(text))
    return text[: end.start()] if end else text


def is_value(text: str) -> bool:
    """Whether ``text`` is one number or formula and nothing else."""
    return _VALUES.fullmatch(mask(text)) is not None


def value_of(text: str) -> str:
    """What ``text``, written where an answer is announced, says the answer is; ``text`` itself if it only is one."""
    text = _trim(_BOLD.sub("  ", _trim(text)))
    masked = mask(text)
    if not _WORD.search(masked):
        return text
    remark = _REMARK.search(masked)
    if remark and remark.start() and not _SEVERAL.search(masked, remark.end()):
        text, masked = text[: remark.start()], masked[: remark.start()]
    if subject := _SUBJECT.fullmatch(masked):
        return _trim(text[: subject.end("value")])
    rest = None if _VALUES.match(masked) else _after_copula(masked)
    if rest is not None:
        stated = _STATED.fullmatch(masked, rest)
        return _noun_phrase(text, stated) if stated else _trim(text[rest:])
    stated = _STATED.fullmatch(masked)
    if stated:
        return _noun_phrase(text, stated)
    if len(_WORD.findall(masked)) > 2 and len(_VALUES.findall(masked)) == 1 and (value := _only_value(text, masked)):
        return value
    return _trim(text)


def conclusion(text: str) -> str | None:
    """The one value that the last sentences of ``text`` conclude; None where none or several are."""
    tail = text[-MAX_SENTENCE:].rstrip()
    if not tail.endswith(_COMPLETE):
        return None  # cut off in the middle of a sentence, perhaps of a number
    masked = mask(tail)
    ends = [match.end() for match in _SENTENCE_END.finditer(masked) if match.end() < len(masked)]
    starts = [0, *ends] if len(text) <= MAX_SENTENCE else ends
    stop = len(tail)
    looked, remarks_only = 0, True
    for start in reversed(starts):
        sentence, blank = tail[start:stop], masked[start:stop]
        stop = start
        if not sentence.strip():
            continue
        opener = _OPENER.match(blank)
        if (opener or remarks_only) and (value := _concluded(sentence, blank, opener.end() if opener else 0)):
            return value
        looked += 1
        remarks_only = remarks_only and not _VALUES.search(blank)
        if opener or looked > MAX_LOOK_BACK:
            return None
    return None


def _concluded(text: str, masked: str, opened: int) -> str | None:
    """What a sentence concludes; ``opened`` is the length of its "Therefore", 0 without one."""
    text, masked = (re.sub(r"[\n*`]", " ", part) for part in (text, masked))
    if _DOUBTFUL.search(masked):
        return None
    if remark := _REMARK.search(masked):
        text, masked = text[: remark.start()], masked[: remark.start()]
    masked = masked.rstrip()
    if subject := _SUBJECT.search(masked):
        value = text[subject.start() : subject.end("value")]
        return _trim(value) if _VALUES.search(masked, subject.start(), subject.end("value")) else None
    if stated := _stated_at(masked, _after_copula(masked)):
        return _noun_phrase(text, stated)
    colon = masked.rfind(":")
    if colon > 0 and (stated := _stated_at(masked, colon + 1)) and re.search(r"[\x00\x01]", stated[0]):
        return _noun_phrase(text, stated)
    if (chinese := _CHINESE.search(masked)) and (found := _CHINESE_VALUE.fullmatch(masked, chinese.end())):
        return _trim(text[found.start("value") : found.end("value")])
    if counted := _COUNTED_IN_WORDS.match(masked, opened):
        return counted["value"]
    if counted := _COUNTED.match(masked, opened):  # "20 workers are needed to make 720 widgets"
        return _with_noun(text, masked, *counted.span("value"))
    return _only_value(text, masked) if opened else None


def _stated_at(masked: str, position: int | None) -> re.Match[str] | None:
    if position is None:
        return None
    blank = len(masked[position:]) - len(masked[position:].lstrip())
    return _STATED.fullmatch(masked, position + blank)


def _after_copula(masked: str) -> int | None:
    """Offset of what the last "is" of a sentence says, where something does."""
    copulas = list(_COPULA.finditer(masked))
    for copula in reversed(copulas):
        if masked[copula.end() :].strip(" .") and _WORD.search(masked, 0, copula.start()):
            return copula.end()
    return None


def _only_value(text: str, masked: str) -> str | None:
    """The one value of a sentence, circumstances ("in 4 weeks") aside where there is another, with its noun."""
    every = list(_VALUES.finditer(masked))
    values = [match for match in every if not _PREPOSITION.search(masked[: match.start()])] or every
    if len(values) != 1:
        return None
    return _with_noun(text, masked, *values[0].span())


def _with_noun(text: str, masked: str, start: int, end: int) -> str | None:
    if (
        _DOUBTFUL.search(masked)
        or _NO_VALUE.search(masked)
        or _OPERATION.search(masked, 0, start)
        or _CHINESE_OPERATION.search(masked)
    ):
        return None
    if counting := _COUNTING.search(masked, 0, start):
        start = counting.start()
    noun = _NOUN.match(masked, end)
    words = _noun(noun[0]) if noun else ""
    if _CONDITIONAL.search(words):
        return None
    return _chain_end(_trim(text[start:end]), _DANGLING.sub("", words))


def _noun_phrase(text: str, stated: re.Match[str]) -> str:
    noun = _noun(stated["tail"])
    if _CONDITIONAL.search(noun):
        return _trim(text[stated.start() : stated.end()])
    value = _trim(text[stated.start("values") : stated.end("values")])
    if value.startswith("[") and value.endswith("]") and "," not in value:
        value = value[1:-1].strip()  # "the angle is [90]"
    return _chain_end(value, noun)


def _noun(words: str) -> str:
    """The words behind a value up to the first that begins a circumstance: " miles" of " miles east of his house"."""
    end = _NOUN_END.search(words)
    return words[: end.start()] if end else words


def _chain_end(value: str, unit: str = "") -> str:
    """What a chain of equations ends with, also one that begins with words or is followed by a unit.

    A single equation is left whole, and so are several.
    """
    equals = list(_CHAIN.finditer(value))
    worded = "\\text" in value[: equals[0].start()] if equals else False
    if not equals or (len(equals) == 1 and not worded and not unit) or _SEVERAL.search(mask(value)) or "begin" in value:
        return value + unit
    if "," in _BRACKETED.sub("", value[: equals[-1].start()]):
        return value + unit
    return _trim(value[equals[-1].end() :].rstrip("$").removesuffix("\\)").removesuffix("\\]")) + unit


def _trim(text: str) -> str:
    text = text.strip().strip("*_`").strip()
    return text.rstrip(".。!,;: ").strip() or text

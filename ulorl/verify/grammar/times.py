"""Times of day, dates and weekdays, read from a whole answer.

``7:30`` alone is a ratio or a time: `values.Ratio` keeps both readings, and only am or pm, a leading zero, or an
hour after noon makes it a time. A date of figures and slashes keeps both orders of day and month. Durations
("1 hour 30 minutes") are quantities: see `scalars`.
"""

from __future__ import annotations

import re

from ulorl.verify.grammar.number_words import english
from ulorl.verify.grammar.values import Clock, Date

HOUR, DAY = 3600, 24 * 3600
_CLOCK = re.compile(
    r"(?:at |exactly )?(\d{1,2})(?::(\d{2})(?::(\d{2}))?)? ?(?:(a|p)\.? ?m\.?|(noon|midnight|hours|hrs|h|o'? ?clock))?"
    r"(?: in the (morning|afternoon|evening)| at (night|noon))?",
    re.IGNORECASE,
)
_SPOKEN = re.compile(
    r"(?:(half|quarter|[a-z]+(?: [a-z]+)?)(?: minutes?)? (past|after|to|before) )?([a-z]+)(?: o'? ?clock)?"
    r"(?: (am|pm|in the (?:morning|afternoon|evening)|at night))?"
)
_CHINESE_CLOCK = re.compile(r"(凌晨|早上|上午|中午|下午|晚上)?(\d{1,2})(?:点|时)(?:(\d{1,2})分|(半)|(整))?")
_MONTHS = {
    "january": 1, "february": 2, "march": 3, "april": 4, "may": 5, "june": 6, "july": 7, "august": 8, "september": 9,
    "october": 10, "november": 11, "december": 12, "jan": 1, "feb": 2, "mar": 3, "apr": 4, "jun": 6, "jul": 7,
    "aug": 8, "sept": 9, "sep": 9, "oct": 10, "nov": 11, "dec": 12,
}  # fmt: skip
_WEEKDAYS = {
    name: full
    for full, names in {
        "monday": "mon 星期一 周一", "tuesday": "tue tues 星期二 周二", "wednesday": "wed 星期三 周三",
        "thursday": "thu thur thurs 星期四 周四", "friday": "fri 星期五 周五", "saturday": "sat 星期六 周六",
        "sunday": "sun 星期日 星期天 周日",
    }.items()
    for name in [full, *names.split()]
}  # fmt: skip
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_WEEKDAY = "|".join(sorted((name for name in _WEEKDAYS if name.isascii()), key=len, reverse=True))
_DATES = tuple(
    re.compile(rf"(?:(?:{_WEEKDAY})\.?,? )?(?:on )?(?:the )?{pattern}", re.IGNORECASE)
    for pattern in (
        rf"(?P<month>{_MONTH})\.? (?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:,? (?P<year>\d{{4}}))?",
        rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?(?P<month>{_MONTH})\.?(?:,? (?P<year>\d{{4}}))?",
        rf"(?P<month>{_MONTH})\.?,? (?P<year>\d{{4}})(?P<day>)",
        r"(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})",
        r"(?P<year>\d{4})/(?P<month>\d{1,2})/(?P<day>\d{1,2})",
        r"(?:(?P<year>\d{4}) ?年 ?)?(?P<month>\d{1,2}) ?月 ?(?P<day>\d{1,2}) ?[日号]",
    )
)
_SLASHES = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})")


def parse_time(text: str) -> Clock | Date | None:
    """The time of day or the date that all of ``text`` states; None for anything else, and for 7:30 alone."""
    if len(text) > 60:
        return None
    return _clock(text) or _date(text) or _spoken_clock(text.lower())


def weekday(text: str) -> str | None:
    """The English name of the weekday that ``text`` (lower case) is, also abbreviated or in Chinese."""
    return _WEEKDAYS.get(text.rstrip("."))


def clock_seconds(hour: str, minute: str, second: str = "") -> int | None:
    """Seconds after midnight of ``7:30`` or ``19:30:05``; None for what no clock shows."""
    if len(minute) != 2 or len(hour) > 2 or len(second) not in (0, 2):
        return None
    h, m, s = int(hour), int(minute), int(second or 0)
    return h * HOUR + m * 60 + s if h < 24 and m < 60 and s < 60 else None


def is_certain(hour: str, minute: str) -> bool:
    """Whether figures alone tell a time of day from a ratio, and its half of the day."""
    return int(hour) > 12 or hour.startswith("0")


def _clock(text: str) -> Clock | None:
    found = _CLOCK.fullmatch(text)
    if not found:
        return _chinese_clock(text)
    hour, minute, second, half, word, part, night = found.groups()
    word = (word or night or "").lower().replace(" ", "").replace("'", "")
    half = (half or "").lower()
    part = (part or "").lower()
    if part or word == "night":
        half = "a" if part == "morning" else "p"
    is_figure = minute is not None and (hour.startswith("0") or (second is None and minute.startswith("0")))
    if not half and not word and not is_figure:
        return None
    if word in ("hours", "hrs", "h") and (minute is None or half):
        return None
    seconds = clock_seconds(hour, minute or "00", second or "")
    if seconds is None:
        return None
    if half or word in ("noon", "midnight"):
        if not 1 <= int(hour) <= 12:
            return Clock(seconds) if half == "p" and 12 < int(hour) < 24 else None
        late = half == "p" or word == "noon"
        return Clock(seconds % (12 * HOUR) + 12 * HOUR * late)
    return Clock(seconds, is_certain(hour, minute or "00"))


def _chinese_clock(text: str) -> Clock | None:
    found = _CHINESE_CLOCK.fullmatch(text)
    if not found:
        return None
    part, hour, minute, half, _ = found.groups()
    seconds = clock_seconds(hour, "30" if half else (minute or "0").zfill(2))
    if seconds is None:
        return None
    if part in ("中午", "下午", "晚上") and int(hour) <= 12:
        return Clock(seconds % (12 * HOUR) + 12 * HOUR)
    return Clock(seconds, part is not None or int(hour) > 12)


def _spoken_clock(text: str) -> Clock | None:
    if text in ("noon", "midday", "12 noon"):
        return Clock(12 * HOUR)
    if text in ("midnight", "12 midnight"):
        return Clock(0)
    found = _SPOKEN.fullmatch(text.replace("-", " "))
    if not found:
        return None
    part, direction, hour_word, half = found.groups()
    if not direction and not half and "clock" not in text:
        return None
    spoken = english([hour_word])
    if spoken is None or spoken.ordinal or spoken.value.denominator != 1 or not 1 <= spoken.value <= 12:
        return None
    offset = 0
    if direction:
        words = part.split()
        minutes = english(words)
        if part in ("half", "quarter", "a quarter"):
            offset = 30 if part == "half" else 15
        elif minutes and minutes.words == len(words) and minutes.value.denominator == 1 and 0 < minutes.value < 60:
            offset = int(minutes.value)
        else:
            return None
        if direction in ("to", "before"):
            offset = -offset
    seconds = (int(spoken.value) % 12 * HOUR + offset * 60) % (12 * HOUR)
    if half is None:
        return Clock(seconds, certain=False)
    return Clock(seconds + 12 * HOUR * (half not in ("am", "in the morning")))


def _date(text: str) -> Date | None:
    slashes = _SLASHES.fullmatch(text)
    if slashes:
        first, second, year = (int(group) for group in slashes.groups())
        readings = {(year, first, second), (year, second, first)}
        valid = frozenset(reading for reading in readings if 1 <= reading[1] <= 12 and 1 <= reading[2] <= 31)
        return Date(valid) if valid else None
    for pattern in _DATES:
        found = pattern.fullmatch(text)
        if found:
            name = found["month"].lower()
            month_number = int(name) if name.isdigit() else _MONTHS[name]
            day = int(found["day"] or 0)
            if 1 <= month_number <= 12 and day <= 31:
                return Date(frozenset({(int(found["year"] or 0), month_number, day)}))
    return None

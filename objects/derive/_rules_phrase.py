"""Reading one sentence: who it is about, what stands where an object may stand, and since when."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from remem.objects.derive import _rules_words as words
from remem.objects.derive._rules_text import CODE, QUOTED, is_left_standing, is_open
from remem.objects.derive.claim import Claim
from remem.objects.instant import day_number, month_days

NOBODY = "user"  # who says "I" in an observation without a speaker
DAY_US = 86_400_000_000  # microseconds

# Kinds of subject a later claim can replace, see `Sentence.claim`.
SINGLE_VALUED = frozenset(
    (
        *("lives_in", "name", "birthday", "birth_year", "born_in", "is_from", "married_to"),
        *("moved_to", "is", "marital_status"),
    )
)

CONFIDENCE = 950  # per mille
CONFIDENCE_OTHER = 900  # of what is said of somebody else

_ONE = sorted(words.ONE_KIN, key=len, reverse=True)
_MANY = sorted(words.MANY_KIN, key=len, reverse=True)
KIN = "|".join((*_MANY, *_ONE))
NAME = r"[A-Z][\w'-]*[\w](?: (?:(?:van|von|de|da|del|der|la) )?[A-Z][\w'-]*\w){0,2}"
ME = r"(?<![\w'@./-])(?:[Ii]|[Ww]e)"
MINE = r"(?<![\w'@./-])(?:[Mm]y|[Oo]ur)"
BE = r"(?:'?m| am|'re| are)"
ADVERBS = (
    r"(?: (?:now|currently|still|also|actually|really|just|both|all|mostly|usually|already"
    r"|personally|definitely|presently|absolutely|totally|truly|simply|always|generally|normally"
    r"|recently|finally|officially|super|so|pretty|very|mainly|often|primarily|only|quite|fully"
    r"|sometimes|regularly|occasionally|tend to|do))*"
)
OTHER = (
    rf"(?<![\w'@./-])(?:(?P<whose>[Mm]y|[Oo]ur) (?P<kin>{KIN})(?:,? (?P<kin_name>{NAME}),?)?"
    rf"|(?P<name>{NAME}))"
)

_PROPER = re.compile(r"[A-Z][\w'&/.-]*")
_JOIN = re.compile(r" (?:(?:of|the|de|la|le|les|del|di|da|do|dos|der|den|upon|on|sur|am|&|and) )?")
_AND_SONS = re.compile(
    r"(?:[A-Z][\w-]* )?(?:Co|Sons|Company|Partners)\b|[A-Z]\w+ (?:Inc|Ltd|LLP)\b"
)
FOLLOW = (
    r"(?:\s*(?:$|[^\w\s'-]|-(?!\w))"
    r"| +(?:and|but|or|with|because|since|as|for|where|when|which|who|near|at|on|in|right|these"
    r"|too|also|now|so|while|until|till|from|to|by|after|before|last|this|again|currently|full"
    r"|part|that|though|although|if|about|just|then|anymore|any|instead|over|rather|not|back"
    r"|all|every|permanently|originally|most|is|are|was|will|like|together|alone|under|during)\b)"
)
_FOLLOW = re.compile(FOLLOW)
_HARD_END = re.compile(r"\s*(?:$|[.,;:!)(…–—])| +(?:and|but|with|since|now|for|because|too)\b")
_DETERMINED_PLACE = re.compile(
    r"(?:(?:an?) (?:[a-z-]+ ){0,3}(?:city|town|village|suburb|apartment|flat|house|cottage|farm"
    r"|studio|dorm|cabin|condo|island|neighbou?rhood|country|region|bungalow|townhouse|houseboat"
    r"|studio apartment)"
    r"|the (?:countryside|suburbs|mountains|(?:north|south|east|west)(?:ern part)?(?= (?:of|in) )))"
    r"(?: (?:near|in|of|outside|by|close to|north of|south of|east of|west of|on) (?=[A-Z]))?"
)
_ABSTRACT = frozenset(
    """fear peace hope harmony hell heaven denial poverty luxury style exile hiding silence sin
    dread pain chaos bed debt limbo captivity town dorms dorm apartments tents vans caravans boats
    interesting moderation isolation squalor terror constant reality shock suspense misery retrospect
    particular general fact shared student public private rural urban social community here there
    my your his her our their this that these those a an the one two some any comfort darkness
    pajamas sweatpants jeans interaction anticipation uncertainty solitude circles between""".split()
)
_MONTH = (
    "|".join(f"{month[:3]}(?:{month[3:]})?" for month in words.MONTHS if month != "may") + "|may"
)
DATE = (
    r"(?:\d{4}-\d\d(?:-\d\d)?(?!\d)"
    rf"|(?i:{_MONTH})\.?(?: \d{{1,2}}(?:st|nd|rd|th)?)?,? (?:19|20)\d\d(?!\d)"
    rf"|\d{{1,2}}(?:st|nd|rd|th)? (?:of )?(?i:{_MONTH})\.?,? (?:19|20)\d\d(?!\d)"
    r"|(?:19|20)\d\d(?![\d-]))"
)
_ADJUNCT = re.compile(
    rf",? (?P<how>since|in|from|on|until|till|as of|back in) (?P<date>{DATE})"
    rf"(?: (?:to|until|till|through) (?P<to>{DATE})|(?P<open> (?:to|until|till) (?:now|today)))?"
)
_LEAD = re.compile(rf"(?:^|[ ,;(])(?P<how>(?i:since|in|as of|on)) (?P<date>{DATE}),? $")
_DATE_PARTS = re.compile(r"\d+|[A-Za-z]+")

_PHRASE_END = re.compile(
    r"[^\w\s'&/+#.%$€£@-]|\.(?:\.|\s|$)|\s-+(?:\s|$)|\n"
    r"|\s(?:because|'?cause|cuz|since|but|so|when|where|which|who|whom|that|while|as|if|though"
    r"|although|and|or|unless|until|till|before|after|i|I|I'\w+|we|it|it's|they|you|he|she|is|are|was"
    r"|were|has|have|had|can|will|whenever|even|then|than|despite|due|especially|particularly"
    r"|mainly|mostly|like|such|plus|both)\b(?!-)"
    r"|\s(?:for|over|in) (?:the (?:past|last)|over|about|almost|nearly|around|\d+|an? (?:long|while"
    r"|few|couple|year|month|week|decade)|many|several|years|months|ages|two|three|four|five|six"
    r"|seven|eight|nine|ten|now|just|some)\b"
)
_TRAIL = re.compile(
    r"(?: (?:too|also|now|lately|again|as well|right now|these days|nowadays|so much|very much"
    r"|a lot|the most|the best|at the moment|every day|every week|every year|anymore|any ?more"
    r"|today|recently|myself|ourselves|anyway|still|right|together|sometimes|more|most|best"
    r"|personally|tbh|though|with|of|in|to|at|on|for|about|from|by|the|a|an|my|our|most of all"
    r"|since|just|all the time|in general|yesterday|last \w+|this \w+|a few \w+ ago|\w+ \w+ ago))+$"
)
_STRANDED = re.compile(r" (?:with|of|in|to|at|on|for|about|from|by)$")
_ADJECTIVE = re.compile(
    r"\b(?:an?|very|really) (?:[\w-]+(?:ful|ive|ous|able|ible|less|ish|ed|al|ant|ent|ing)|safe|big"
    r"|small|nice|good|great|fun|new|old|calm|warm|quiet|simple|short|long|young|cute|little|happy"
    r"|healthy|easy|lovely|friendly|cosy|cozy|slow|fast|cheap|strong|light|dark|red|blue|green)$"
)
_MORE_ADJECTIVES = re.compile(r",? (?:and |or )?[a-z]")
_DANGLING = re.compile(
    r"\b(?:it|its|it's|this|that|that's|these|those|them|they|him|her|his|hers|their|theirs|one|ones"
    r"|here|there|so|such|you|your|yours|u|ya|everyone|everybody|what|how|who|why|when|where|which"
    r"|all|both|each|other|others|another|same|not|no|never|being|me|us|something|anything|everything"
    r"|nothing|thing|things|stuff|someone|anyone|somebody|else|way|idea|fact|sound|look|looks|feeling"
    r"|part|bit|kind|sort|type|lot|lots|bunch|much|more|too|very|ever|don't|won't|can't|do|does|did)\b"
    rf"|[{QUOTED}{CODE}]",
    re.IGNORECASE,
)
_TITLE = re.compile(rf"(?:the (?:film|movie|book|song|show|series|game) )?\"({QUOTED}{{2,60}})\"")


class Part:
    """Where an object stands in a sentence, and where reading goes on."""

    __slots__ = ("after", "end", "start")

    def __init__(self, start: int, end: int, after: int | None = None) -> None:
        """Keep the places; after is the end unless given."""
        self.start = start
        self.end = end
        self.after = end if after is None else after


class Sentence:
    """One sentence of an observation and what is known about its writer.

    Attributes:
        text: of the observation.
        said: the sentence, what is not the writer's blanked out.
        base: its place in the text.
        me: subject of the first person.
        asserted: when it was said, microseconds UTC, or None.
        lower: the writer does without capitals, so names may lack them.
    """

    __slots__ = ("asserted", "base", "lower", "me", "said", "text")

    def __init__(self, text: str, said: str, base: int, me: str, asserted: int | None) -> None:
        """Take a sentence of a text at a place."""
        self.text = text
        self.said = said
        self.base = base
        self.me = me
        self.asserted = asserted
        self.lower = said == said.lower()

    def cut(self, start: int, end: int) -> str:
        """Return the original words between two places of the sentence."""
        return self.text[self.base + start : self.base + end]

    def claim(
        self,
        predicate: str,
        subject: str,
        value: str,
        line: str,
        start: int,
        end: int,
        *,
        kind: str = "fact",
        single: bool | None = None,
        ends: bool = False,
        valid_from: int | None = None,
        valid_to: int | None = None,
        confidence: int = CONFIDENCE,
    ) -> Claim:
        """Make a claim whose span is a part of the sentence."""
        if single is None:
            single = predicate in SINGLE_VALUED
        return Claim(
            kind,
            line,
            subject,
            predicate,
            value,
            self.base + start,
            self.base + end,
            single,
            ends,
            valid_from,
            valid_to,
            confidence,
        )


class Family:
    """Rules that are tried together.

    Attributes:
        keys: words, lower case, of which a text must have one.
        forms: patterns of which one must be found in the text.
        claims: derives the claims of one sentence.
    """

    __slots__ = ("claims", "forms", "keys")

    def __init__(
        self,
        keys: str | frozenset[str],
        claims: Callable[[Sentence], Iterator[Claim]],
        *forms: re.Pattern[str],
    ) -> None:
        """Keep the three; keys may be given as words of one text."""
        self.keys = frozenset(keys.split()) if isinstance(keys, str) else keys
        self.forms = forms
        self.claims = claims


class Subject:
    """Who a statement is about.

    Attributes:
        name: as it stands in triples.
        first: it is the writer.
        many: there may be several of the kind ("my brother"), so nothing is replaced.
    """

    __slots__ = ("first", "many", "name")

    def __init__(self, name: str, first: bool = False, many: bool = False) -> None:
        """Keep the three fields."""
        self.name = name
        self.first = first
        self.many = many


def other(s: Sentence, found: re.Match[str]) -> Subject | None:
    """Read the subject of a match of `OTHER`; None if it names nobody."""
    kin, called = found["kin"], found["kin_name"]
    if called is not None:
        return Subject(called) if is_name(called) else None
    if kin is not None:
        return Subject(f"{s.me}'s {kin}", many=kin in words.MANY_KIN)
    name = str(found["name"])
    if not is_name(name):
        return None
    if name.lower() in words.ONE_KIN:  # "Mom lives in Leeds"
        return Subject(f"{s.me}'s {name.lower()}")
    return Subject(name)


def stands(s: Sentence, found: re.Match[str], end: int) -> bool:
    """Say whether a match begins a plain statement that nothing after it takes back."""
    return is_open(s.said, found.start()) and is_left_standing(s.said, end)


def is_name(name: str) -> bool:
    """Say whether capitalised words can be the name of somebody."""
    parts = name.split()
    return not any(
        part.lower() in words.NOT_NAMES
        or part.lower() in words.DEMONYMS
        or "'" in part[-3:]
        or (part.isupper() and len(part) > 2)
        for part in parts
    )


def follows(said: str, at: int) -> bool:
    """Say whether what was read before a place is whole: no noun goes on with it."""
    return _FOLLOW.match(said, at) is not None


def proper(s: Sentence, at: int, most: int = 5, owner: bool = False) -> Part | None:
    """Read capitalised words: "San Francisco", "Bank of America"; with owner also "Macy's"."""
    said = s.said
    end, count, here = at, 0, at
    while count < most and (token := _PROPER.match(said, here)) is not None:
        end = token.end()
        if said[end - 1] == "." and not re.search(r"\b(?:[A-Z]|St|Mt|Ft)\.$", said[at:end]):
            end -= 1
            count += 1
            break
        count += 1
        joint = _JOIN.match(said, end)
        if joint is None:
            break
        if joint[0] == " and " and not _AND_SONS.match(said, joint.end()):
            break
        here = joint.end()
    if not count:
        return None
    while end > at and said[end - 1] in "'-/&":
        end -= 1
    last = said[at:end]
    if not _FOLLOW.match(said, end) or (last.endswith("'s") and not owner):
        return None
    first = last.split()[0]
    if first.lower() in words.NOT_NAMES and (len(first) == 1 or not first.isupper()):
        return None  # but "US"
    return Part(at, end)


def place(s: Sentence, at: int) -> Part | None:
    """Read a place: proper names, "a small town near Boston", with its region if one follows."""
    said = s.said
    start = at
    if kind := _DETERMINED_PLACE.match(said, at):
        if kind[0][-1] != " ":
            return Part(at, kind.end()) if _FOLLOW.match(said, kind.end()) else None
        near = proper(s, kind.end())
        return Part(at, near.end) if near else None
    if said.startswith("the ", at):
        start = at + 4
    for word in ("downtown ", "central ", "northern ", "southern ", "eastern ", "western "):
        if said.startswith(word, start):
            inner = proper(s, start + len(word))
            return Part(start, inner.end) if inner else None
    found = proper(s, start)
    if found is None:
        return _lower_place(s, at) if s.lower else None
    if region := re.compile(r", ((?:[A-Z][\w.]*)(?: [A-Z]\w*)?)").match(said, found.end):
        name = region[1].rstrip(".").replace(".", "").lower()
        if name in words.REGIONS and _FOLLOW.match(
            said, region.start(1) + len(region[1].rstrip("."))
        ):
            return Part(start, region.start(1) + len(region[1].rstrip(".")))
    return found


def _lower_place(s: Sentence, at: int) -> Part | None:
    found = re.compile(r"[^\W\d_]{3,}(?: [^\W\d_]{3,})?").match(s.said, at)
    if found is None:
        return None
    parts = found[0].split()
    end = found.end()
    if len(parts) == 2 and not _HARD_END.match(s.said, end):
        parts, end = parts[:1], at + len(parts[0])
    if not _HARD_END.match(s.said, end) or any(part in _ABSTRACT for part in parts):
        return None
    if len(parts) == 2 and parts[1] in (
        "and",
        "but",
        "with",
        "since",
        "now",
        "for",
        "because",
        "too",
    ):
        end = at + len(parts[0])
    return Part(at, end)


def title(s: Sentence, at: int) -> Part | None:
    """Read a title in quotes."""
    found = _TITLE.match(s.said, at)
    return Part(found.start(1), found.end(1), found.end()) if found else None


def phrase(s: Sentence, at: int, most: int, stop: re.Pattern[str] | None = None) -> Part | None:
    """Read a noun phrase or gerund of at most so many words that says by itself what is meant.

    Args:
        s: the sentence.
        at: where it begins.
        most: words it may have.
        stop: ends it as well.
    """
    said = s.said
    if quoted := title(s, at):
        return quoted
    cut = _PHRASE_END.search(said, at)
    end = cut.start() if cut else len(said)
    if stop is not None and (earlier := stop.search(said, at, end)):
        end = earlier.start()
    end = at + len(said[at:end].rstrip(" .'"))
    if trail := _TRAIL.search(said, at, end):
        if cut is not None and cut[0][:1].isspace() and _STRANDED.search(trail[0]):
            return None  # what the preposition belongs to was cut off
        end = trail.start()
    value = said[at:end]
    if _ADJECTIVE.search(said, max(0, at - 3), end) and _MORE_ADJECTIVES.match(said, end):
        return None  # "a safe, friendly place"
    if not value or value != value.strip() or not value[0].isalnum() or value.count(" ") >= most:
        return None
    return None if _DANGLING.search(value) else Part(at, end)


def adjunct(s: Sentence, at: int) -> tuple[int | None, int | None, int, str]:
    """Read "since 2019", "in March 2022", "from 2010 to 2015", "until 2015" after an object.

    Returns:
        First instant (microseconds UTC) or None, first instant after the last or None, where the
        words end, and the word they begin with ("" if there are none).
    """
    found = _ADJUNCT.match(s.said, at)
    if found is None:
        return None, None, at, ""
    bounds = date_bounds(found["date"])
    if bounds is None:
        return None, None, at, ""
    how = found["how"]
    if how in ("until", "till"):
        return None, bounds[1], found.end(), "until"
    last = date_bounds(found["to"]) if found["to"] else None
    if last is not None:
        return bounds[0], last[1], found.end(), "from"
    return bounds[0], None, found.end(), "since" if found["open"] else how


def lead_date(s: Sentence, at: int) -> tuple[int | None, int]:
    """Read "Since 2019" or "In March 2022," before a statement.

    Returns:
        First instant (microseconds UTC) or None, and where the words begin (at if there are none).
    """
    found = _LEAD.search(s.said, 0, at)
    bounds = date_bounds(found["date"]) if found else None
    return (bounds[0], found.start("how")) if found and bounds else (None, at)


def date_bounds(written: str) -> tuple[int, int] | None:
    """Read a year, month or day: its first instant and the first after it, microseconds UTC."""
    year = month = day = 0
    for part in _DATE_PARTS.findall(written):
        if part[0].isdigit():
            if len(part) == 4:
                year = int(part)
            elif (month and not day) or (not year and not month):
                day = int(part)
            else:
                month = int(part)
        elif len(part) > 2 and part.lower() not in ("of",):
            month = 1 + [m[:3] for m in words.MONTHS].index(part[:3].lower())
    if (
        not year
        or month > 12
        or (day and not month)
        or day > (month_days(year, month) if month else 0)
    ):
        return None
    if day:
        first = day_number(year, month, day)
        last = first + 1
    elif month:
        first = day_number(year, month, 1)
        last = first + month_days(year, month)
    else:
        first, last = day_number(year, 1, 1), day_number(year + 1, 1, 1)
    return first * DAY_US, last * DAY_US

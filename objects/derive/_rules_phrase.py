"""Reading phrases of a sentence: names, places, and noun phrases that can stand by themselves."""

from __future__ import annotations

import re

from remem.objects.derive import _rules_words as words
from remem.objects.derive._rules_form import Form
from remem.objects.derive._rules_sentence import Part, Sentence
from remem.objects.derive._rules_text import CODE, QUOTED

_PROPER = Form(r"[A-Z][\w'&/.-]*")
_JOIN = Form(r" (?:(?:of|the|de|la|le|les|del|di|da|do|dos|der|den|upon|&|and) )?")
_AND_SONS = Form(r"(?:[A-Z][\w-]* )?(?:Co|Sons|Company|Partners)\b|[A-Z]\w+ (?:Inc|Ltd|LLP)\b")
FOLLOW = (
    r"(?:\s*(?:$|[^\w\s'-]|-(?!\w))"
    r"| +(?:and|but|or|with|because|since|as|for|where|when|which|who|near|at|on|in|right|these"
    r"|too|also|now|so|while|until|till|from|to|by|after|before|last|this|again|currently|full"
    r"|part|that|though|although|if|about|just|then|anymore|any|instead|over|rather|not|back"
    r"|all|every|permanently|originally|most|is|are|was|will|like|together|alone|under|during)\b)"
)
_FOLLOW = Form(FOLLOW)
_HARD_END = Form(r"\s*(?:$|[.,;:!)(…\u2013\u2014])| +(?:and|but|with|since|now|for|because|too)\b")
_DETERMINED_PLACE = Form(
    r"(?:(?:an?) (?:[a-z-]+ ){0,3}(?:city|town|village|suburb|apartment|flat|house|cottage|farm"
    r"|studio|dorm|cabin|condo|island|neighbou?rhood|country|region|bungalow|townhouse|houseboat"
    r"|studio apartment)|the (?:countryside|suburbs|mountains|(?:north|south|east"
    r"|west)(?:ern part)?(?= (?:of|in) )))"
    r"(?: (?:near|in|of|outside|by|close to|north of|south of|east of|west of|on) (?=[A-Z]))?"
)
# "I live in Emacs" is said of no place.
_NO_PLACES = frozenset(
    """vim neovim emacs tmux excel slack jira vscode vs git github terminal bash zsh outlook
    notion figma photoshop teams discord minecraft gondor mordor narnia hogwarts westeros
    python java rust jupyter gmail chrome firefox linux windows macos
    """.split()
)
_ABSTRACT = frozenset(
    """fear peace hope harmony hell heaven denial poverty luxury style exile hiding silence sin
    dread pain chaos bed debt limbo captivity town dorms dorm apartments tents vans caravans
    boats interesting moderation isolation squalor terror constant reality shock suspense
    misery retrospect particular general fact shared student public private rural urban social
    community here there my your his her our their this that these those a an the one two some
    any comfort darkness pajamas sweatpants jeans interaction anticipation uncertainty
    solitude circles between
    """.split()
)
_PHRASE_END = Form(
    r"[^\w\s'&/+#.%$€£@-]|\.(?:\.|\s|$)|\s-+(?:\s|$)|\n|\s(?:because|'?cause|cuz|since|but|so"
    r"|when|where|which|who|whom|that|while|as|if|though|although|and|or|unless|until|till|before"
    r"|after|i|I|I'\w+|we|it|it's|they|you|he|she|is|are|was|were|has|have|had|can|will|whenever"
    r"|even|then|than|despite|due|especially|particularly|mainly|mostly|like|such|plus"
    r"|both)\b(?!-)|\s(?:for|over|in) (?:the (?:past|last)|over|about|almost|nearly|around|\d+"
    r"|an? (?:long|while|few|couple|year|month|week|decade)|many|several|years|months|ages|two"
    r"|three|four|five|six|seven|eight|nine|ten|now|just|some)\b"
)
_TRAIL = Form(
    r"(?: (?:too|also|now|lately|again|as well|right now|these days|nowadays|so much|very much"
    r"|a lot|the most|the best|at the moment|every day|every week|every year|anymore|any ?more"
    r"|today|recently|myself|ourselves|anyway|still|right|together|sometimes|more|most|best"
    r"|personally|tbh|though|with|of|in|to|at|on|for|about|from|by|the|a|an|my|our|most of all"
    r"|since|just|all the time|in general|yesterday|last \w+|this \w+|a few \w+ ago|\w+ \w+ ago))+$"
)
_STRANDED = Form(r" (?:with|of|in|to|at|on|for|about|from|by)$")
_ADJECTIVE = Form(
    r"\b(?:an?|very|really) (?:[\w-]+(?:ful|ive|ous|able|ible|less|ish|ed|al|ant|ent|ing)|safe|big"
    r"|small|nice|good|great|fun|new|old|calm|warm|quiet|simple|short|long|young|cute|little|happy"
    r"|healthy|easy|lovely|friendly|cosy|cozy|slow|fast|cheap|strong|light|dark|red|blue|green)$"
)
_MORE_ADJECTIVES = Form(r",? (?:and |or )?[a-z]")
_DANGLING = Form(
    r"\b(?:it|its|it's|this|that|that's|these|those|them|they|him|her|his|hers|their|theirs|one"
    r"|ones|here|there|so|such|you|your|yours|u|ya|everyone|everybody|what|how|who|why|when|where"
    r"|which|all|both|each|other|others|another|same|not|no|never|being|me|us|something|anything"
    r"|everything|nothing|thing|things|stuff|someone|anyone|somebody|else|way|idea|fact|sound"
    r"|look|looks|feeling|part|bit|kind|sort|type|lot|lots|bunch|much|more|too|very|ever|don't"
    r"|won't|can't|do|does|did)\b"
    rf"|[{QUOTED}{CODE}]",
    re.IGNORECASE,
)
_TITLE = Form(rf"(?:the (?:film|movie|book|song|show|series|game) )?\"({QUOTED}{{2,60}})\"")


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
    if said[found.start : found.end].split()[0].lower() in _NO_PLACES:
        return None
    if region := Form(r", ((?:[A-Z][\w.]*)(?: [A-Z]\w*)?)").match(said, found.end):
        name = region[1].rstrip(".").replace(".", "").lower()
        if name in words.REGIONS and _FOLLOW.match(
            said, region.start(1) + len(region[1].rstrip("."))
        ):
            return Part(start, region.start(1) + len(region[1].rstrip(".")))
    return found


def _lower_place(s: Sentence, at: int) -> Part | None:
    found = Form(r"[^\W\d_]{3,}(?: [^\W\d_]{3,})?").match(s.said, at)
    if found is None:
        return None
    parts = found[0].split()
    end = found.end()
    if len(parts) == 2 and not _HARD_END.match(s.said, end):
        parts, end = parts[:1], at + len(parts[0])
    if not _HARD_END.match(s.said, end) or any(
        part in _ABSTRACT or part in _NO_PLACES for part in parts
    ):
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


def phrase(s: Sentence, at: int, most: int, stop: Form | None = None) -> Part | None:
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

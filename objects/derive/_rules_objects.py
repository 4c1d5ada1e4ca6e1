"""What may stand as the object of a verb: a place of work, a language, an instrument, a taste.

Each reader takes a sentence and a place in it and answers with the parts that are objects, or with
nothing when what stands there is anything else.
"""

from __future__ import annotations

import re

from remem.objects.derive import _rules_words as words
from remem.objects.derive._rules_form import Form
from remem.objects.derive._rules_phrase import FOLLOW, follows, phrase, place, proper
from remem.objects.derive._rules_sentence import NAME, Part, Sentence, is_name

_ARTICLE = Form(r"(?:an?|the|some|my|our) ")
_WORKPLACE = Form(
    r"(?:an? |the (?=[\w'+&-]+ (?!in\b|near\b)[a-z]))(?:[\w'+&-]+ ){0,4}?(?:company|start-?up"
    r"|hospital|school|bank|university|college|restaurant|caf[eé]|firm|agency|shop|store|bakery"
    r"|library|hotel|gym|non-?profit|charity|museum|clinic|studio|lab|laboratory|factory|shelter"
    r"|supermarket|newspaper|magazine|farm|brewery|bookstore|bookshop|airport|airline|consultancy"
    r"|pharmacy|salon|warehouse|office|practice|kitchen|church|center|centre|theatre|theater"
    r"|nursery|kindergarten|daycare|food bank|club|hospice|zoo|garage|pub|bar)"
    rf"(?={FOLLOW})"
    r"(?: (?:in|near|in downtown|in central) (?=[A-Z]))?"
)
_LOWER_NAME = Form(r"[a-z][\w.&-]+")
_NO_WORKPLACE = frozenset(
    """home night nights work least times once last present weekends weekend day days all school
    sea height heights something it that this him her them peanuts money free me myself fun
    hire sunrise dawn dusk noon midnight tech finance marketing sales hr living now it's us
    you everyone clients customers tips pay charity change peace justice months years hours
    weeks a an the my our your his their two three half full part christmas
    """.split()
)
_FEW_WORDS = Form(
    r"(?:(?:fluent|native|basic|broken|conversational|some|a little|a bit of|a little bit of|good"
    r"|decent|perfect|only|both|mostly|mainly) )*"
)
_LANGUAGE = Form(r"(?:(?:fluent|some|a little|a bit of|basic|conversational|broken) )*([A-Za-z]+)")
_MORE = Form(r", and |, | and | as well as | & |, plus | plus ")
_JUDGED = frozenset(
    """bad terrible good great big huge decent natural born better lousy awful horrible slow fast
    strong visual total real true hopeless aspiring wannabe would-be former retired failed
    future armchair budding self-proclaimed so-called ex lifelong proud bit kind such hard not
    crappy mediocre excellent fantastic wonderful keen avid best worst mere fake
    """.split()
)
_WORD = Form(r"[\w'+#/-]+")
_ROLE = Form(r"(?:an?|the) ")
_NO_START = frozenset(
    """the a an my our your his their for with in on at to of from by about out up off down away
    into well hard better best less more most when while if me him us them myself as over
    under without every each once twice again regularly professionally together online outside
    inside often daily weekly late early abroad alone always sometimes
    """.split()
)
_KNOWN = Form(
    r"the (?:ocean|sea|beach|outdoors|mountains|snow|rain|summer|winter|autumn|countryside|desert"
    r"|great outdoors|forest|cold|heat|piano|guitar|violin|arts|theatre|theater|Beatles|[A-Z]\w+)\b"
)
_RESTRICTS = Form(r" (?:that|who|whom|which|where|whose|when|if|than|i|I|we|they|you|is|are)\b")
_AND = Form(
    r" and ((?!(?:go|do|try|find|play|have|want|need|think|hate|love|like|get|make|work|live|am|was"
    r"|used|my|it|so|the|a|an|how|feel|hope|enjoy|still|always|just|can|also|really)\b)"
    r"[a-z][\w-]+(?: [a-z][\w-]+)?)(?=\s*(?:$|[.,;!)]))"
)
_TASTE_STOP = Form(r"\s(?:whenever|by|every|each|at (?:night|home|work)|in general|in my)\b")
_NO_TASTE = Form(
    r"\b(?:job|jobs|company I|saying|say|hear(?:ing)? from|talk(?:ing)? to you|see(?:ing)? you|view"
    r"|energy|work ethic|progress|attitude|suggestions?|ideas?|photos?|pics?|pictures?|vibes?"
    r"|colou?rs?|designs?|structure|taste|freedom|theme|spirit|passion|think|believe|know|remind"
    r"|reminder|point out|add|to be honest|hearing|knowing|dedication|enthusiasm|support|options?"
    r"|approach|solutions?|versions?|plan|answers?|results?|output|layout"
    r"|format|wording|draft|code|changes?)\b"
)
_PERSON = Form(NAME)
_SHORT_PLACES = frozenset(("UK", "US", "USA", "UAE", "NYC", "LA", "DC", "NZ", "SF", "U.S.", "U.K."))
_DEFINITE = Form(r"the (?=\w)")
_FAVOURED_STOP = Form(r"\s(?:by far|because|of all|these days|at the moment|to)\b")
_DESCRIBES = frozenset(
    """great good amazing awesome bad closed gone broken back better best nice hard tough fun
    easy delicious yummy perfect beautiful lovely cool brilliant excellent fantastic wonderful
    sick ill dead out off on up down over coming playing winning losing changing running
    falling open full empty early late new old different difficult available unavailable close
    near far missing lost cancelled canceled finished done obvious clear secret blooming
    approaching too
    """.split()
)
_PASTIME = Form(r"\b(?:hobby|hobbies|activity|activities|sport|pastime|exercise|subject) ")
_DWELLING = Form(
    r"\b(?:house|apartment|flat|live|living|lived|city|town|village|neighbou?rhood|husband|wife"
    r"|parents|rent|landlord|abroad|moved (?:back|out|over|here|away)|relocated|emigrated"
    r"|immigrated|originally|grew up|come from|hail from|born)\b",
    re.IGNORECASE,
)
_NO_ALLERGY = frozenset("nonsense bullshit bs work mornings mondays drama stupidity people".split())
_TOOL = Form(r"([A-Za-z0-9][\w.+#/-]*(?: [A-Z0-9][\w.+#/-]*){0,2})")
_TOOL_ENDS = Form(
    r"\s*(?:$|[.,;!)(])| +(?:for|as|to|on|with|and|at|because|since|instead|every|now|in|daily|over"
    r"|mostly|but|when|rather|by default|anymore|any)\b"
)
_NO_TOOL = _NO_START | frozenset(
    "it this that these those what everything them both all only".split()
)
_NO_PREFERENCE = Form(r"\b(?:option|version|approach|solution|way|alternative|variant)\b")
_PREFERRED_STOP = Form(r"\s(?:to|over|rather|instead|more|above|for|in|on|when|any)\b")
_COURSE = Form(
    r"\b(?:course|class|classes|courses|lessons?|workshop|marathon|triathlon|race|exam|bootcamp)$"
)
_GROUP = Form(
    r"\b(?:club|team|group|band|choir|orchestra|union|party|board|committee|community|church|gym"
    r"|society|association|forum|network|league|crew|troupe|cooperative|council)$"
)
_OWNED = Form(r"(?:an? |(?=(?:two|three|four|five|\d{1,2}) ))")
_OWNED_STOP = Form(r"\s(?:in|on|at|with|from|near)\b")
_PLURAL_STOP = Form(r"\s(?:from|in|with|at|on|of)\b")
_SUBJECT_ENDS = Form(r"\s(?:at|in|with|for|under|on|by|every|this|part|full)\b")


def organisation(s: Sentence, at: int) -> list[Part]:
    """Read where somebody works: "Acme Corp", "McDonald's", "a hospital in Leeds"."""
    said = s.said
    start = at + 4 if said.startswith("the ", at) else at
    if found := proper(s, start, owner=True):
        return [found]
    if kind := _WORKPLACE.match(said, at):
        if said[kind.end() - 1] != " ":
            return [Part(at, kind.end())] if follows(said, kind.end()) else []
        near = proper(s, kind.end())
        return [Part(at, near.end)] if near else []
    if s.lower and (name := _LOWER_NAME.match(said, at)):
        end = name.end() - name[0].endswith(".")
        if said[at:end] not in _NO_WORKPLACE and _TOOL_ENDS.match(said, end):
            return [Part(at, end)]
    return []


def languages(s: Sentence, at: int) -> list[Part]:
    """Read names of languages, joined by commas and "and"."""
    found = []
    here = _end_of(_FEW_WORDS, s.said, at)
    while (name := _LANGUAGE.match(s.said, here)) and name[1].lower() in words.LANGUAGES:
        found.append(Part(name.start(1), name.end(1)))
        more = _MORE.match(s.said, name.end())
        if more is None:
            break
        here = more.end()
    return found


def several(s: Sentence, at: int) -> list[Part]:
    """Read short noun phrases joined by commas and "and"."""
    found = []
    here = at
    while (part := phrase(s, here, 3)) is not None:
        value = s.said[part.start : part.end].lower()
        if value in _NO_ALLERGY or value.split()[0] in _NO_START:
            return []
        found.append(part)
        more = _MORE.match(s.said, part.after)
        if more is None:
            break
        here = more.end()
    return found


def occupation(s: Sentence, at: int) -> list[Part]:
    """Read "primary school teacher": at most five words that end in a known occupation."""
    end = _through(s.said, at, 5, words.OCCUPATIONS)
    if end is None or s.said.startswith(" of", end):
        return []
    modifiers = s.said[at:end].lower().split()[:-1]
    return [] if _JUDGED.intersection(modifiers) else [Part(at, end)]


def origin(s: Sentence, at: int) -> list[Part]:
    """Read where somebody comes from: a named place."""
    found = place(s, at)
    if found is None:
        return []
    value = s.said[found.start : found.end]
    short = value.isupper() and len(value) <= 4 and value not in _SHORT_PLACES
    return [] if short or (value[0].islower() and not s.lower) else [found]


def person(s: Sentence, at: int) -> list[Part]:
    """Read a person's name."""
    found = _PERSON.match(s.said, at)
    if found is None or not is_name(found[0]) or not follows(s.said, found.end()):
        return []
    return [Part(at, found.end())]


def role(s: Sentence, at: int) -> list[Part]:
    """Read what somebody works as: an article and at most five words."""
    article = _ROLE.match(s.said, at)
    found = phrase(s, article.end() if article else at, 5, _SUBJECT_ENDS)
    if found is None or s.said[found.start : found.end].split()[0].lower() in _NO_START:
        return []
    return [found] if article or s.lower else []


def instruments(s: Sentence, at: int) -> list[Part]:
    """Read an instrument or game of the closed list, with at most two words before it."""
    article = _ARTICLE.match(s.said, at)
    start = article.end() if article else at
    end = _through(s.said, start, 3, words.PLAYED)
    if end is None or s.said[start:end].split()[0].lower() in _NO_START:
        return []
    return [Part(start, end)]


def learnt(s: Sentence, at: int) -> list[Part]:
    """Read what is being learnt: a language, an instrument, a named thing."""
    return languages(s, at)[:1] or instruments(s, at) or named(s, at)


def course(s: Sentence, at: int) -> list[Part]:
    """Read a course, class or race: an article and a few words that end so."""
    article = _OWNED.match(s.said, at)
    found = phrase(s, article.end(), 5, _OWNED_STOP) if article else None
    return [found] if found and _COURSE.search(s.said[found.start : found.end]) else []


def group(s: Sentence, at: int) -> list[Part]:
    """Read what one can belong to: a club, a team, something with a name."""
    article = _ARTICLE.match(s.said, at)
    found = phrase(s, article.end() if article else at, 5, _OWNED_STOP)
    if found is None:
        return []
    value = s.said[found.start : found.end]
    return (
        [found] if _GROUP.search(value) or (value[0].isupper() and proper(s, found.start)) else []
    )


def named(s: Sentence, at: int) -> list[Part]:
    """Read capitalised words."""
    found = proper(s, at)
    return [found] if found else []


def taste(s: Sentence, at: int) -> list[Part]:
    """Read what somebody likes: a short phrase that means the same to any reader."""
    start = at
    for lead in ("to ", "just ", "also "):
        if s.said.startswith(lead, start):
            start += len(lead)
    found = phrase(s, start, 7, _TASTE_STOP)
    if found is None:
        return []
    if found.after != found.end:  # a title in quotes
        return [found]
    value = s.said[found.start : found.end]
    first = value.split()[0].lower()
    if first in _NO_START and first not in ("a", "an") and not _KNOWN.match(value):
        return []
    if first == "the":
        found = Part(found.start + 4, found.end)
    if (
        _NO_TASTE.search(value)
        or s.said.startswith(" or ", found.end)
        or _RESTRICTS.match(s.said, found.end)
    ):
        return []
    if " " not in value and (more := _AND.match(s.said, found.end)):
        return [Part(found.start, more.end(1))]
    return [found]


def preferred(s: Sentence, at: int) -> list[Part]:
    """Read what is preferred, up to what it is preferred to."""
    found = phrase(s, at + 3 * s.said.startswith("to ", at), 6, _PREFERRED_STOP)
    if found is None:
        return []
    first = s.said[found.start : found.end].split()[0].lower()
    value = s.said[found.start : found.end]
    vague = first in ("not", "to", "if", "when", "the") or _NO_PREFERENCE.search(value)
    return [] if vague and found.after == found.end else [found]


def favoured(s: Sentence, at: int) -> list[Part]:
    """Read what is somebody's favourite; what only describes it is none."""
    start = at
    if article := _DEFINITE.match(s.said, at):
        start = article.end()
    found = phrase(s, start, 5, _FAVOURED_STOP)
    if found is None:
        return []
    last = s.said[found.start : found.end].rsplit(" ", 1)[-1].lower()
    if last.endswith("ing") and not _PASTIME.search(s.said, 0, at):
        return []
    first = s.said[found.start : found.end].split()[0].lower()
    if last in _DESCRIBES or (first in _NO_START and first not in ("a", "an")):
        return []
    return [found]


def hometown(s: Sentence, at: int) -> Part | None:
    """Read a place that people move to, which a program or a company is not.

    One word alone must be a known city, region or country, or the sentence must speak of living.
    """
    found = place(s, at)
    if found is None:
        return None
    value = s.said[found.start : found.end]
    last = value.rsplit(", ", 1)[-1].lower()
    if last in words.REGIONS or value.lower() in words.CITIES or _DWELLING.search(s.said):
        return found
    return None


def tool(s: Sentence, at: int) -> list[Part]:
    """Read one named tool: "vim", "Visual Studio Code"."""
    found = _TOOL.match(s.said, at + (s.said[at : at + 1] == "`"))
    if found is None:
        return []
    end = found.end() - found[0].endswith(".")
    after = end + (s.said[end : end + 1] == "`")
    if found[0].split()[0].lower().rstrip(".") in _NO_TOOL or not _TOOL_ENDS.match(s.said, after):
        return []
    return [Part(found.start(), end, after)]


def studied(s: Sentence, at: int) -> list[Part]:
    """Read a field of study."""
    found = phrase(s, at, 4, _SUBJECT_ENDS)
    if found is None or found.after != found.end:
        return []
    return [] if s.said[found.start : found.end].split()[0].lower() in _NO_START else [found]


def owned(s: Sentence, at: int) -> list[Part]:
    """Read what is owned: an article or number and a few words."""
    article = _OWNED.match(s.said, at)
    if article is None:
        return []
    found = phrase(s, article.end(), 4, _OWNED_STOP)
    return [found] if found else []


def plural(s: Sentence, at: int) -> list[Part]:
    """Read a short plural: what is collected."""
    found = phrase(s, at, 3, _PLURAL_STOP)
    if found is None or not s.said[found.start : found.end].endswith("s"):
        return []
    return [] if s.said[found.start : found.end].split()[0].lower() in _NO_START else [found]


def _through(said: str, at: int, most: int, closed: frozenset[str]) -> int | None:
    """Find where the first word of a closed list ends, at most so many words on."""
    for _ in range(most):
        word = _WORD.match(said, at)
        if word is None:
            return None
        if word[0].lower() in closed and follows(said, word.end()):
            return word.end()
        at = word.end() + 1
        if said[word.end() : at] != " ":
            return None
    return None


def _end_of(pattern: Form, said: str, at: int) -> int:
    found = pattern.match(said, at)
    return found.end() if found else at

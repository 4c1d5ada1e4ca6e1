"""Things that the writer did once: joined, bought, visited, began; and what is kept up for years.

Only verbs with something that says by itself what it was: "went to a concert", not "went to it".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from remem.objects.derive._rules_dates import adjunct, lead_date
from remem.objects.derive._rules_form import Form
from remem.objects.derive._rules_phrase import phrase, proper, title
from remem.objects.derive._rules_sentence import ADVERBS, ME, Family, Part, Sentence
from remem.objects.derive._rules_text import is_left_standing, is_open
from remem.objects.derive._rules_words import PETS
from remem.objects.derive.claim import Claim

_PREDICATES = {
    "joined": "joined",
    "signed up for": "signed_up_for",
    "enrolled in": "signed_up_for",
    "bought": "bought",
    "purchased": "bought",
    "adopted": "adopted",
    "visited": "visited",
    "went to": "visited",
    "traveled to": "visited",
    "travelled to": "visited",
    "graduated from": "graduated_from",
    "graduated with": "graduated_with",
    "won": "won",
    "attended": "attended",
    "got promoted to": "promoted_to",
    "participated in": "took_part_in",
    "took part in": "took_part_in",
    "went on": "went_on",
    "held": "held",
    "baked": "made",
    "cooked": "made",
    "drew": "drew",
    "designed": "designed",
    "developed": "developed",
    "released": "released",
    "installed": "installed",
    "set up": "set_up",
    "switched to": "switched_to",
    "migrated to": "switched_to",
    "tried out": "tried",
    "celebrated": "celebrated",
    "performed": "performed",
    "made": "made",
    "gave": "gave",
    "started": "started",
    "volunteered at": "volunteered_at",
    "worked with": "worked_with",
    "tried": "tried",
    "ran": "ran",
    "organized": "organised",
    "organised": "organised",
    "hosted": "hosted",
    "donated": "donated",
    "created": "created",
    "painted": "painted",
    "built": "built",
    "wrote": "wrote",
    "launched": "launched",
    "founded": "founded",
    "published": "published",
    "completed": "completed",
    "sold": "sold",
    "passed": "passed",
    "failed": "failed",
    "got": "got",
    "took": "took",
    "finished reading": "read",
    "finished": "finished",
    "read": "read",
    "watched": "watched",
}
_VERBS = "|".join(sorted(_PREDICATES, key=len, reverse=True))
_DID = Form(
    rf"{ME}(?:'ve| have)?{ADVERBS} (?P<did>(?<!ve )(?<!have )got(?= )"
    rf"|(?!got (?!promoted))(?:{_VERBS}))(?: (?:myself|ourselves|us))?(?= )"
)
_DID_KEYS = frozenset(verb.split(" ", 1)[0] for verb in _PREDICATES) | {"finished", "promoted"}

_SOME = Form(
    r" (?:an? (?:few |couple of |bunch of )?|another |some |the (?=(?:local|regional|national"
    r"|annual|military|bar|final|first|[A-Z]))|(?:my|our) (?:first|own|old|new) |the (?=(?:beach"
    r"|museum|zoo|aquarium|theat(?:er|re)|cinema|library|doctor|dentist)\b)(?=(?:two|three|four"
    r"|five|\d{1,2}) ))?"
)
_COUNT = Form(r"(?:two|three|four|five|\d{1,2}) ")
_STOP = Form(
    r"\s(?:at|from|in|on|for|with|about|near|by|during|around|to|instead|where|after|online)\b"
)
_LONG_STOP = Form(r"\s(?:at|from|with|during|instead|to|after)\b")
_LONG = (
    "celebrated",
    "joined",
    "signed up for",
    "enrolled in",
    "ran",
    "donated",
    "won",
    "took",
    "got",
    "received",
)
_VAGUE = frozenset(
    """place event thing things show store shop spot few couple lot lots way difference point
    mistake decision deal break look chance moment step picture pic photo shot good great long
    while feeling call message email text reply response answer lesson piece job work project
    world life part impact contribution friend friends mess promise ton bit try go change
    changes typo commit branch pr request fix file files folder copy backup note notes error
    errors bug query test tests script connection connections assumption guess comment example
    function class method variable command suggestion list summary progress attempt effort
    """.split()
)
_GOT = Form(
    rf"(?:\b|^)(?:{'|'.join(PETS)}|car|bike|bicycle|motorbike|house|apartment|tattoo|promotion"
    r"|scholarship|degree|diploma|certificate|guitar|piano|laptop|camera|job offer|puppies)$"
)
_TOOK = Form(r"(?:class|course|lesson|lessons|workshop|exam|test|trip|gap year|tour|cruise)$")
_GAVE = Form(r"(?:talk|talks|presentation|speech|lecture|concert|workshop|seminar)$")
_BEGUN = Form(
    r"(?:course|class|business|company|blog|podcast|channel|club|band|diet|routine|program"
    r"|programme|degree|phd|garden|petition|project|newsletter|collection|charity|startup"
    r"|start-up|group)\b"
)
_RAN = Form(r"\b(?:race|marathon|half-marathon|run|\d+ ?k|campaign|workshop|camp|seminar)\b", re.I)
_FORMS = {"ran": _RAN, "got": _GOT, "took": _TOOK, "gave": _GAVE, "started": _BEGUN}
_INDEFINITE = ("got", "took", "gave")
_NAMED_ONLY = ("worked with", "tried")
_TITLED = ("finished reading", "finished", "read", "watched")
_WENT = Form(
    rf"{ME}(?: went|'ve gone| have gone){ADVERBS} (?P<object>(?:hiking|camping|bowling|swimming"
    r"|skiing|surfing|climbing|fishing|dancing|kayaking|sailing|biking|cycling|running|snowboarding"
    r"|skating|ice skating|horseback riding|rock climbing|scuba diving|diving|snorkeling|hunting"
    r"|clubbing|rafting|paragliding|skydiving|snowshoeing|birdwatching|backpacking))(?![\w-])"
)

_BEGAN = Form(
    rf"{ME}(?:'ve| have)?{ADVERBS} (?:started|begun|began|took up|taken up) (?=[a-z]+ing\b)"
)
_NO_BEGINNING = Form(
    r"(?:think|feel|realiz|realis|notic|wonder|do|hav|be|cry|laugh|look|see|freak|com|gett|go|try"
    r"|tak|mak|giv|us|tell|say|talk|ask|introduc|worry|hear|mov|turn|put|lean|focus|rely|plann|car"
    r"|writ|work|liv|pack|appreciat|understand|believ|lik|lov|enjoy|question|shak|sweat)ing\b"
)
_BEGAN_STOP = Form(r"\s(?:instead|from|after|to (?:get|help|make|keep|stay|feel))\b")
_LASTING = (
    "playing|practicing|practising|doing|learning|studying|painting|drawing|coding|programming"
    "|running|coaching|teaching|training|writing|singing|dancing|climbing|surfing|skiing|skating"
    "|swimming|cycling|knitting|gardening|cooking|baking|brewing|fishing|sailing|collecting"
    "|volunteering|mentoring|streaming|boxing|rowing"
)
_FOR_LONG = Form(rf"{ME}(?:'ve| have){ADVERBS} been{ADVERBS} (?=(?:{_LASTING})\b)")
_DURATION = Form(
    r" (?:for (?:about |over |almost |nearly |around |just under |more than |at least |the past "
    r"|the last )?(?:an? (?:few|couple of)|\d+|several|many|two|three|four|five|six|seven|eight"
    r"|nine|ten|twelve|fifteen|twenty|some)\+? (?:days|weeks|months|years|decades)(?: now)?"
    r"|for (?:a|one) (?:year|month|decade)(?: now)?|since (?P<year>(?:19|20)\d\d))(?!\w)"
)
_NEEDS_OBJECT = Form(r"(?:playing|practi[cs]ing|doing|learning|studying|collecting)(?: \w+ly)?$")


def done(s: Sentence) -> Iterator[Claim]:
    """Derive what the writer did once."""
    for found in _DID.finditer(s.said):
        did = found["did"]
        part = _thing(s, found.end(), did)
        if part is None or not is_open(s.said, found.start()):
            continue
        valid_from, _, after, how = adjunct(s, part.after)
        if how in ("until", "from", "since") or not is_left_standing(s.said, after):
            continue
        line = f"{s.me} {'was promoted to' if did == 'got promoted to' else did}"
        yield _event(s, found, part, _PREDICATES[did], line, after, valid_from)
    for found in _WENT.finditer(s.said):
        if is_open(s.said, found.start()) and is_left_standing(s.said, found.end()):
            part = Part(*found.span("object"))
            yield _event(s, found, part, "went", f"{s.me} went", found.end())


def begun(s: Sentence) -> Iterator[Claim]:
    """Derive what the writer took up."""
    for found in _BEGAN.finditer(s.said):
        part = phrase(s, found.end(), 8, _BEGAN_STOP)
        if part is None or _NO_BEGINNING.match(s.said, part.start):
            continue
        if is_open(s.said, found.start()) and is_left_standing(s.said, part.after):
            yield _event(s, found, part, "started", f"{s.me} started", part.after)


def kept_up(s: Sentence) -> Iterator[Claim]:
    """Derive what the writer has been doing for some time."""
    for found in _FOR_LONG.finditer(s.said):
        part = phrase(s, found.end(), 6)
        if part is None or _NEEDS_OBJECT.match(s.said, part.start, part.end):
            continue
        long = _DURATION.match(s.said, part.end)
        if long is None or not is_open(s.said, found.start()):
            continue
        value = s.cut(part.start, part.end)
        valid_from = adjunct(s, part.end)[0] if long["year"] else None
        line = f"{s.me} has been {value}"
        yield s.claim("does", s.me, value, line, found.start(), long.end(), valid_from=valid_from)


def _event(
    s: Sentence,
    found: re.Match[str],
    part: Part,
    predicate: str,
    line: str,
    after: int,
    valid_from: int | None = None,
) -> Claim:
    value = s.cut(part.start, part.end)
    begin = found.start()
    if valid_from is None:
        valid_from, begin = lead_date(s, begin)
    return s.claim(
        predicate,
        s.me,
        value,
        f"{line} {value}",
        begin,
        after,
        kind="event",
        valid_from=valid_from,
    )


def _thing(s: Sentence, at: int, did: str) -> Part | None:
    if did in _TITLED:
        return title(s, at + 1)
    some = _SOME.match(s.said, at)
    if some is None:
        return None
    start = some.end()
    if did in _NAMED_ONLY or (some[0] == " " and not _COUNT.match(s.said, start)):
        # Without an article only a name says by itself what is meant.
        return proper(s, start + 4 * s.said.startswith("the ", start))
    found = phrase(s, start, 7, _LONG_STOP if did in _LONG else _STOP)
    if found is None:
        return None
    value = s.said[found.start : found.end].lower()
    if value.rsplit(" ", 1)[-1] in _VAGUE and (" " not in value or did not in _LONG):
        return None
    form = _FORMS.get(did)
    if form is not None and (did in _INDEFINITE and some[0] not in (" a ", " an ")):
        return None
    if form is not None and not form.search(value):
        return None
    return found


FAMILIES = (
    Family(_DID_KEYS | {"went", "gone"}, done, _DID, _WENT),
    Family("started begun began took taken", begun, _BEGAN),
    Family(frozenset(_LASTING.split("|")), kept_up, _FOR_LONG),
)

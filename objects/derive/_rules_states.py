"""States that change: a job left or begun, marriage, diet and health, a goal."""

from __future__ import annotations

from collections.abc import Iterator

from remem.objects.derive._rules_dates import adjunct
from remem.objects.derive._rules_form import Form
from remem.objects.derive._rules_objects import organisation
from remem.objects.derive._rules_phrase import phrase
from remem.objects.derive._rules_sentence import ADVERBS, BE, ME, MINE, Family, Sentence, stands
from remem.objects.derive._rules_text import is_left_standing, is_open
from remem.objects.derive.claim import Claim

_LOST_JOB = Form(
    rf"{ME}{ADVERBS}(?:(?:'ve| have)?{ADVERBS} (?:left|quit|lost|resigned from|gave up)"
    rf" (?:my|our) (?:old |day |full-time )?job"
    rf"|(?: was| got|'ve been| have been){ADVERBS} (?:laid off|fired|let go|made redundant))"
    r"(?:(?P<from> (?:at|with|from) )|(?![\w'-]))"
)
_NEW_JOB = Form(
    rf"{ME}(?:'ve| have)?{ADVERBS} (?:started (?:a new job|a job|my new job|working|work)"
    r"|got (?:a|the|my) (?:new |dream )?job|accepted (?:a|the) (?:job|position)|got hired) "
    r"(?:at|for|with|by) "
)
_END = (
    r"(?=\s*(?:$|[.,;!)(\u2013\u2014-])"
    r"| (?:and|but|so|since|now|too|last|this|again|in|on|for|with)\b)"
)
_STATUS = Form(
    rf"{ME}(?: just| finally| recently)?(?: got|{BE}){ADVERBS} "
    rf"(?P<object>married|engaged|divorced|single|widowed|separated){_END}"
)
_NOT_MARRIED = Form(rf"{ME}{BE} no longer (?P<object>married|engaged|single)\b")
_TRAIT = Form(
    rf"{ME}{BE}{ADVERBS} (?P<object>(?:strictly )?(?:vegetarian|vegan|pescatarian|left-handed"
    r"|right-handed|colou?r-?blind|lactose[- ]intolerant|gluten[- ]intolerant|diabetic|asthmatic"
    r"|dyslexic|epileptic|deaf|retired|unemployed|self-employed|trans|transgender|gay|bisexual"
    rf"|lesbian|non-binary|autistic|short-sighted|near-sighted|teetotal|bilingual)){_END}"
)
_ALLERGY = Form(
    rf"{ME}(?: have|'ve got|'ve){ADVERBS} (?:an? )?(?:(?:severe|mild|bad|serious) )?"
    r"(?:(?P<object>[a-z]+) allergy|allergy to (?P<other>[a-z]+)|(?P<illness>asthma|adhd|ADHD"
    r"|diabetes|epilepsy|arthritis|migraines|celiac disease|coeliac disease|hay fever|tinnitus"
    rf"|insomnia|dyslexia|high blood pressure)){_END}"
)
_GOAL = Form(
    rf"{MINE} (?:(?:main|ultimate|biggest|big|lifelong|long-term|next) )?(?P<what>goal|dream)"
    r" (?:is|has always been) to (?=[a-z])"
)
_STATE_KEYS = (
    "married engaged divorced single widowed separated vegetarian vegan pescatarian left-handed"
    " right-handed colorblind colourblind color-blind colour-blind lactose lactose-intolerant"
    " gluten"
    " gluten-intolerant diabetic asthmatic dyslexic epileptic deaf retired unemployed self-employed"
    " trans transgender gay bisexual lesbian non-binary autistic short-sighted near-sighted"
    " teetotal"
    " bilingual trilingual allergy asthma adhd diabetes epilepsy arthritis migraines celiac coeliac"
    " hay tinnitus insomnia dyslexia blood"
)


def jobs(s: Sentence) -> Iterator[Claim]:
    """Derive that a job was left, or a new one begun."""
    for found in _LOST_JOB.finditer(s.said):
        parts = organisation(s, found.end()) if found["from"] else []
        if (found["from"] and not parts) or not is_open(s.said, found.start()):
            continue
        after = parts[0].after if parts else found.end()
        valid_to, _, after, _ = adjunct(s, after)
        if is_left_standing(s.said, after):
            value = s.cut(parts[0].start, parts[0].end) if parts else ""
            line = f"{s.me} no longer works at {value}" if value else f"{s.me} left a job"
            yield s.claim(
                "works_at", s.me, value, line, found.start(), after, ends=True, valid_to=valid_to
            )
    for found in _NEW_JOB.finditer(s.said):
        for part in organisation(s, found.end()):
            valid_from, _, after, _ = adjunct(s, part.after)
            if stands(s, found, after):
                value = s.cut(part.start, part.end)
                line = f"{s.me} works at {value}"
                yield s.claim(
                    "works_at", s.me, value, line, found.start(), after, valid_from=valid_from
                )


def states(s: Sentence) -> Iterator[Claim]:
    """Derive marriage, diet, health: what a person is or has in a word."""
    for found in _STATUS.finditer(s.said):
        if stands(s, found, found.end()):
            value = s.cut(*found.span("object"))
            yield s.claim("marital_status", s.me, value, f"{s.me} is {value}", *found.span())
    for found in _NOT_MARRIED.finditer(s.said):
        if stands(s, found, found.end()):
            value = s.cut(*found.span("object"))
            line = f"{s.me} is no longer {value}"
            yield s.claim("marital_status", s.me, value, line, *found.span(), ends=True)
    for found in _TRAIT.finditer(s.said):
        if stands(s, found, found.end()):
            value = s.cut(*found.span("object"))
            yield s.claim("is_a", s.me, value, f"{s.me} is {value}", *found.span())
    for found in _ALLERGY.finditer(s.said):
        if not stands(s, found, found.end()):
            continue
        group = next(name for name in ("object", "other", "illness") if found[name])
        value = s.cut(*found.span(group))
        predicate = "has" if group == "illness" else "allergic_to"
        line = f"{s.me} {predicate.replace('allergic', 'is allergic').replace('_', ' ')} {value}"
        yield s.claim(predicate, s.me, value, line, *found.span())


def goals(s: Sentence) -> Iterator[Claim]:
    """Derive what the writer calls a goal or dream."""
    for found in _GOAL.finditer(s.said):
        part = phrase(s, found.end(), 10)
        if part is not None and stands(s, found, part.after):
            value = s.cut(part.start, part.end)
            line = f"{s.me}'s {found['what']} is to {value}"
            yield s.claim("has_goal", s.me, value, line, found.start(), part.after)


FAMILIES = (
    Family("job laid fired redundant started hired accepted", jobs, _LOST_JOB, _NEW_JOB),
    Family(_STATE_KEYS, states, _STATUS, _NOT_MARRIED, _TRAIT, _ALLERGY),
    Family("goal dream", goals, _GOAL),
)

"""What of a text may be read as the writer's own plain statements, and where a statement begins.

The text is copied with everything blanked out that is not the writer's: code blocks, quoted lines
and passages, pasted chats and forwarded mail.  The copy has the same length, so that places in it
are places in the text.  Sentences that ask, joke, suppose or report are left out whole; what
remains is precise rather than complete.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from remem.objects.derive._rules_form import Form

MAX_TEXT = 50_000  # code points; a longer text is not talk and is left alone
MAX_SENTENCE = 600  # code points; a longer sentence is left alone

QUOTED = "\x01"  # stands for each character of a quoted passage
CODE = "\x02"  # stands for each character of code

# Typographic signs become plain ones, and nothing of the text may look like a blanked-out place.
_PLAIN = {
    ord(sign): plain
    for signs, plain in (("\u2018\u2019", "'"), ("\u201c\u201d\u201e\u00ab\u00bb", '"'))
    for sign in signs
}
_PLAIN |= {ord("\u00a0"): " ", ord(QUOTED): " ", ord(CODE): " "}

_MARKS = Form(f"[{QUOTED}{CODE}]")

# A text that sets a task about a text, or plays, says nothing of its writer.
_TASK = Form(
    r"\b(?:translat(?:e|ion|ing)|re-?write|rephras|paraphras|proof-?read|summari[sz]e|role-?play"
    r"|pretend|act as|fix (?:the|my) grammar|in character|from the perspective|hypothetical"
    r"|(?:just|only|i'm|im|was) (?:kidding|joking)|jk|april fool|sarcas|lorem ipsum"
    r"|(?:write|draft|compose|generate|make up|tell|give) (?:(?:me|us) )?(?:an?|the|some|\d+) "
    r"(?:[\w-]+ ){0,3}(?:story|stories|poem|song|lyrics|e-?mail|letter|essay|dialog|dialogue|bio"
    r"|tweet|post|sentence|cover|joke|script|speech|example|prompt|monologue|novel)s?\b"
    r"|you(?:'re| are) an? (?:[\w-]+ ){0,3}(?:assistant|expert|bot|model|agent|character))"
    r"|^you are an? |/s$",
    re.IGNORECASE | re.MULTILINE,
)
_FENCE = Form(r"^[ \t]*(```+|~~~+).*?(?:^[ \t]*\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_INDENTED = Form(r"^(?: {4}|\t)[^\n]*$", re.MULTILINE)
_TICKS = Form(r"`([^`\n]*)`")
_QUOTED_LINE = Form(r"^[ \t]*[>|][^\n]*$", re.MULTILINE)
_FORWARDED = Form(
    r"^(?:On [^\n]{5,120} wrote:|-{2,} ?(?:Original|Forwarded) message\b|From: |Begin forwarded)"
    r".*",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_SINGLE_QUOTED = Form(r"(?<![\w'])'(?=\w)([^'\n]* [^\n]{0,200}?)'(?!\w)")
_LABEL = Form(
    r"^[ \t]*(?:[-*+•][ \t]+|\[[^\]\n]{1,40}\][ \t]*)?[<@*]{0,3}"
    r"(?P<label>([^\W_][\w ,'()/-]{0,60}?)[>*]{0,3}:)[ \t][^\n]*$",
    re.MULTILINE,
)
_OWN_LABELS = frozenset(
    (
        *("me", "i", "note", "notes", "fyi", "ps", "reminder", "remember", "update", "correction"),
        *("fact", "fun fact", "about me", "quick note", "for the record", "heads up", "edit"),
        *("psa", "btw", "news", "big news", "good news"),
    )
)
_STOP = Form(r"[.!?…]+[\"')\]*]*(?=\s|$)|\n")
_ABBREVIATED = Form(r"(?:\b[A-Z]|\b(?:St|Mt|Ft|Dr|Mr|Mrs|Ms|Prof|vs|approx|e\.g|i\.e))$")
_BULLET = Form(r"[ \t]*(?:[-*+•#]+|\d{1,3}[.)])[ \t]+")
_LEADS_ON = Form(r"(?:\b(?:that|if|unless|and|or|but|said|says|because|when|the|a|to)|,)$")
_WRAPPED = 50  # a line of this length without a full stop goes on in the next one

# Sentences that say something else than that it is so.
_NOT_SAID = Form(
    r"\b(?:lol|lmao|rofl|ha(?:ha)+|hehe|unless|whether|imagine|suppose|supposing|wish|as if"
    r"|as though|would|wouldn't|could've|in my dreams?|once upon a time|for (?:example|instance)"
    r"|e\.g|allegedly|supposedly|apparently|reportedly|rumou?r|according to|let's say|say that"
    r"|in theory|if (?:i|we|you|he|she|they|it|only|my|the)"
    r"|(?:in|of) (?:the|this|my|a|your) (?:\w+ )?(?:games?|story|novel|movie|film|play|lyrics|song"
    r"|dream|simulation|scenario|metaverse)(?! industr| compan| studio))\b|\[insert|<[a-z _-]+>"
    r"|[😂🤣😜😝😉🙃]",
    re.IGNORECASE,
)
_SPEECH = Form(
    r"\b(?:sa(?:id|ys?|ying)|told|tells|tell(?:ing)?(?! you)|asks?|asked|claim(?:s|ed)?|thinks?"
    r"|thought|believe[sd]?|repl(?:y|ies|ied)|answer(?:s|ed)|wr(?:ote|ites)|heard|hears"
    r"|quot(?:e[sd]?|ing)|insist(?:s|ed)|argue[sd]?|reports?|reported|mention(?:s|ed)|texted"
    r"|assumes?|assumed|feels? like|felt like|seems?|looks? like|guess(?:ed)?(?! what)|doubts?|if"
    r"|i'd|they'd|might|may|maybe|perhaps|probably|possibly|dream(?:s|ed|t)? (?:that|of)|imagined"
    r"|joke[sd]?|lie[sd]?"
    r"|lying|never|nobody|not true|false|wrong)\b",
    re.IGNORECASE,
)
_AFTER = Form(
    r"\b(?:(?:he|she|they|people|[A-Z]\w+) (?:said|says|told|claims?|thinks?|wrote)"
    r"|(?:said|says) (?:nobody|no one|he|she|they|[A-Z]\w+)|[Ii] (?:think|guess|suppose|believe"
    r"|heard|hope|wish|assume|reckon)|or something|or not"
    r"|if|unless|not true|someday|one day|tomorrow|soon|next (?:week|month|year|spring|summer"
    r"|autumn|fall|winter|semester|term)|maybe|probably|perhaps|not really|just kidding|right\?)\b",
)
_OPENER = Form(
    r"(?:^|[,;!(]|[\u2013\u2014]|-|\.\.\.?|…|(?:^|[ ,])(?:and|but|so|because|'?cause|cuz|since|as"
    r"|also|plus|well|yeah|yes|yep|yup|yea|ok|okay|oh|ah|aw|wow|hey|hi|hello|nah|nope|no"
    r"|(?<!ake )sure|thanks|actually|honestly|personally|frankly|basically|currently|now|nowadays"
    r"|these days|right now|at the moment|lately|recently|today|yesterday|this (?:week|month|year"
    r"|morning)|last \w+|(?:\w+ ){1,2}(?:days?|weeks?|months?|years?) ago|on \w+day|btw|(?:since"
    r"|as of|in|on) (?:[\w-]+ )?(?:19|20)\d\d(?:-\d\d){0,2}|by the way|fyi|anyway|though|although"
    r"|even though|while|whereas|however|luckily|thankfully|sadly|unfortunately|fortunately"
    r"|of course|in fact|for me|as for me|as you know|you know|like you|guess what|btw|absolutely"
    r"|definitely|totally|same|me too|cool|nice|great|ps|psa|(?:(?:that|this|it|which)'s|is"
    r"|reminds me|reminded me|remember|reasons?(?: of)?) why|one of the reasons|(?:tell|telling"
    r"|let) you(?: know)?(?: that)?|(?:please )?(?:note|remember|know)(?: that)?|(?:note|notes"
    r"|fyi|ps|reminder|remember|update|correction|fact|fun fact|about me|me|edit|psa"
    r"|btw|news|quick note|for the record|heads up|big news|good news|i):))[ \"'(*_]*$",
    re.IGNORECASE,
)


def plain(text: str) -> str:
    """Return the text with plain quotation marks and blanks, as long as it was."""
    return text if text.isascii() and not _MARKS.search(text) else text.translate(_PLAIN)


def own_words(text: str, speaker: str) -> str:
    """Copy a text with what is not the writer's own talk blanked out.

    Args:
        text: as `plain` returns it.
        speaker: who wrote it, or empty; a line labelled with another name is somebody else's.

    Returns:
        Text of the same length.
    """
    work = text
    if "`" in work or "~~~" in work:
        work = _FENCE.sub(_blank_code, work)
        work = _TICKS.sub(_blank_ticks, work)
    if "\n    " in work or "\t" in work:
        work = _INDENTED.sub(_blank_code, work)
    if ">" in work or "|" in work:
        work = _QUOTED_LINE.sub(_blank_code, work)
    if "wrote:" in work or "rom: " in work or "orward" in work or "--" in work:
        work = _FORWARDED.sub(_blank_code, work)
    if ": " in work:
        own = speaker.casefold()
        work = _LABEL.sub(lambda found: _blank_label(found, own), work)
    if '"' in work:
        work = _blank_quotes(work)
    if "'" in work:
        work = _SINGLE_QUOTED.sub(lambda found: f"'{QUOTED * len(found[1])}'", work)
    return work


def sentences(work: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each sentence that is no question."""
    start = 0
    for stop in _STOP.finditer(work):
        end = stop.end()
        if stop[0] == "\n":
            if _goes_on(work, start, stop.start(), end):
                continue
            end = stop.start()
        elif stop[0] == "." and _ABBREVIATED.search(work, start, stop.start()):
            continue
        if _states(work, start, end):
            yield _without_bullet(work, start, end), end
        start = stop.end()
    if start < len(work) and _states(work, start, len(work)):
        yield _without_bullet(work, start, len(work)), len(work)


def sets_task(text: str) -> bool:
    """Say whether a text is about a text or a game rather than about its writer."""
    return _TASK.search(text) is not None


def is_stated(said: str) -> bool:
    """Say whether a sentence is meant as it stands, neither supposed nor joked nor hearsay."""
    return _NOT_SAID.search(said) is None


def is_open(said: str, at: int) -> bool:
    """Say whether a plain statement can begin at a place in a sentence.

    It begins the sentence, or follows a comma, a conjunction or a filler, and nothing before it
    reports, supposes or doubts.
    """
    before = said[:at]
    if not before.strip():
        return True
    return _OPENER.search(before.rstrip()) is not None and _SPEECH.search(before) is None


def is_left_standing(said: str, at: int) -> bool:
    """Say whether nothing after a place takes the statement before it back."""
    return _AFTER.search(said, at) is None


def _states(work: str, start: int, end: int) -> bool:
    if not 6 <= end - start <= MAX_SENTENCE:
        return False
    return work.find("?", max(start, end - 4), end) < 0


def _goes_on(work: str, start: int, stop: int, after: int) -> bool:
    """Say whether a line break is only where a long line was wrapped."""
    line = work[max(start, work.rfind("\n", start, stop) + 1) : stop].rstrip()
    if not line or after >= len(work) or work[after] in "\n \t" or _BULLET.match(work, after):
        return False
    return len(line) >= _WRAPPED or _LEADS_ON.search(line) is not None


def _without_bullet(work: str, start: int, end: int) -> int:
    bullet = _BULLET.match(work, start, end)
    return bullet.end() if bullet else start


def _blank_code(found: re.Match[str]) -> str:
    return "".join(c if c == "\n" else CODE for c in found[0])


def _blank_ticks(found: re.Match[str]) -> str:
    # One word in backticks is a name in a sentence; more is code.
    return found[0] if " " not in found[1] else f"`{CODE * len(found[1])}`"


def _blank_label(found: re.Match[str], own: str) -> str:
    label = found[2].strip(" *").casefold()
    if label in _OWN_LABELS or (own and label == own):
        words = found.end("label") - found.start()
        return " " * words + found[0][words:]
    return _blank_code(found)


def _blank_quotes(work: str) -> str:
    parts: list[str] = []
    at = 0
    while (begin := work.find('"', at)) >= 0:
        if begin and work[begin - 1].isdigit():  # inches
            parts.append(work[at : begin + 1])
            at = begin + 1
            continue
        paragraph = work.find("\n\n", begin)
        limit = len(work) if paragraph < 0 else paragraph
        end = work.find('"', begin + 1, limit)
        # A quotation that is never closed goes on to the end of its paragraph.
        stop = limit if end < 0 else end
        parts.append(work[at : begin + 1])
        parts.append(QUOTED * (stop - begin - 1))
        at = stop
        if end >= 0:
            parts.append('"')
            at = end + 1
    parts.append(work[at:])
    return "".join(parts)

"""Questions, hits and their quotes: what a recall is given and what it hands back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.index.analyze import terms
from remem.index.ran import Ran
from remem.index.whose import OWN, Whose
from remem.objects import evidence, refs
from remem.objects.errors import RememError, UsageError
from remem.objects.model import Observation, Scope, Source
from remem.objects.summaries import Stale
from remem.objects.views import Lens

if TYPE_CHECKING:
    from remem.index.asked import Here, Understood
    from remem.objects.encode import Obj
    from remem.objects.reader import Part
    from remem.objects.views import Eye

MODES = ("hybrid", "lexical", "vector")
QUOTE = 240  # characters of a quote
MAX_LIMIT = 10_000  # hits
MAX_QUERY = 100_000  # characters; more cannot be a question


class Question(msgspec.Struct, frozen=True):
    """What is asked and how.

    Attributes:
        text: in any words.
        limit: hits wanted.
        mode: one of MODES.
        lens: view, times and withheld statuses.
        kinds: only these kinds (any of them), or empty for all.
        role: only what this role said, or "".
        since: not before this instant, or None.
        until: before this instant, or None.
        why: keep the parts of each score.
        auto: a question about the past may look through the view ``history`` instead of ``now``.
        ran: only commands that ran there and ended so; with no text, the latest come first.
        here: where it is asked from, so that "in this folder" can be understood; None: never.
    """

    text: str
    lens: Lens
    limit: int = 10
    mode: str = "hybrid"
    kinds: tuple[str, ...] = ()
    role: str = ""
    since: int | None = None
    until: int | None = None
    why: bool = False
    auto: bool = False
    ran: Ran = Ran()
    here: Here | None = None

    @property
    def is_empty(self) -> bool:
        """True when neither words nor a filter ask for anything."""
        asked = self.text.strip() or self.ran or self.kinds or self.role
        return not asked and self.since is None and self.until is None


def check_size(question: Question) -> None:
    """Raise for a text that cannot be a question.

    Raises:
        UsageError: it is too long.
    """
    size = len(question.text)
    if size > MAX_QUERY:
        raise UsageError(f"the question has {size:,} characters, at most {MAX_QUERY:,} do")


class Cite(msgspec.Struct, frozen=True):
    """An observation behind a hit: its id, source and the words that bear on it."""

    id: bytes
    source: Source | None
    quote: str


class Hit(msgspec.Struct, frozen=True):
    """One answer.  Instants are microseconds UTC.

    Attributes:
        conflict: ids of other hits that hold at the same time and say otherwise.
        stale: of a summary: what changed below it, or None.
        whose: whose words it is.
        confidence: how likely it answers the question, 0 to 1.
    """

    id: bytes
    ref: bytes
    obj: Obj
    scope: Scope
    score: float
    state: refs.RefState
    truth: str
    cites: list[Cite]
    why: dict[str, float] | None
    conflict: tuple[bytes, ...] = ()
    confidence: float = 0.0
    stale: Stale | None = None
    whose: Whose = OWN


class Answer(msgspec.Struct, frozen=True):
    """Hits, the mode they were found by, and what was amiss.

    Attributes:
        view: the view that was looked through.
        view_reason: the words of the question that asked for it, or None when it was asked for.
        confidence: how likely one of the hits answers the question, 0 to 1.
        understood: the filters that were read from a question about commands, or None.
    """

    hits: list[Hit]
    mode: str
    degraded: str | None
    view: str = "now"
    view_reason: str | None = None
    confidence: float = 0.0
    understood: Understood | None = None


def matches(question: Question, obj: Obj, state: refs.RefState) -> bool:
    """Whether an object passes the filters of a question (kind, role, place, period)."""
    if question.ran and not question.ran.fits(obj):
        return False
    if question.kinds and obj.kind not in question.kinds:
        if not (isinstance(obj, Observation) and "observation" in question.kinds):
            return False
    if question.role and getattr(obj, "role", "") != question.role:
        return False
    if question.since is not None or question.until is not None:
        stated = obj.asserted if isinstance(obj, Observation) else obj.valid_from
        when = state.starts if stated is None else stated
        if question.since is not None and when < question.since:
            return False
        if question.until is not None and when >= question.until:
            return False
    return True


def cites_of(
    eye: Eye, part: Part, object_id: bytes, obj: Obj, wanted: list[tuple[bytes, float]]
) -> list[Cite]:
    """The observations behind an object that may be shown; of an observation, itself."""
    if isinstance(obj, Observation):
        return [Cite(object_id, obj.source, excerpt(obj.text, wanted, QUOTE))]
    cites = []
    for cited in obj.cites:
        if eye.of(part, eye.reader.ref_of(part, cited)) is None:
            continue
        try:
            observation = eye.reader.object(part, cited)
        except RememError:
            continue
        if not isinstance(observation, Observation):
            continue
        parts = evidence.grounds(obj, cited, observation.text)
        words = " ".join(observation.text[start:end].strip() for start, end in parts)
        quote = words[:QUOTE] if words else excerpt(observation.text, wanted, QUOTE)
        cites.append(Cite(cited, observation.source, quote))
    return cites


def excerpt(text: str, wanted: list[tuple[bytes, float]], width: int) -> str:
    """The part of a text that bears most on the question, at most width characters."""
    flat = " ".join(text.split())
    if len(flat) <= width:
        return flat
    weights = dict(wanted)
    words = flat.split(" ")
    gains = [sum(weights.get(t, 0.0) for t in terms(w)) for w in words[:4000]]
    best, best_gain, start, size, gain = 0, -1.0, 0, 0, 0.0
    for end, word in enumerate(words[:4000]):
        size += len(word) + 1
        gain += gains[end]
        while size > width and start < end:
            size -= len(words[start]) + 1
            gain -= gains[start]
            start += 1
        if gain > best_gain + 1e-9:
            best, best_gain = start, gain
    out: list[str] = []
    room = width - 2
    for word in words[best:]:
        if len(word) + 1 > room:
            break
        out.append(word)
        room -= len(word) + 1
    body = " ".join(out) or words[best][: width - 2]
    ends = best + len(out) >= len(words)
    return ("" if best == 0 else "\u2026") + body + ("" if ends else "\u2026")

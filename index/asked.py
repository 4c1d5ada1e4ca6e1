"""Questions about commands: "what did I run in this folder yesterday", "failed commands here".

Such a question says where, when and with what result something ran, and little else.  What says so
is taken out of it and becomes a filter; the words that are left rank, and where none is left, the
commands are listed, the latest first.

A question is read so only where it plainly speaks of commands: by that word, or by what was run,
and with a place, a branch, a result or a time beside it, or with nothing else at all.  "Which race
did I run yesterday" is none.  What "this folder" is, the caller says; nothing here looks.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from remem.index.analyze import STOP_WORDS
from remem.index.ran import FAILED, KIND, OK, Ran
from remem.index.timewords import QUESTION_CHARS, periods
from remem.objects import instant

if TYPE_CHECKING:
    from remem.index.hits import Question

MAX_LEFT = 8  # words that a question about commands has besides,
FEW_LEFT = 3  # and where it only names commands and a place or a time
MAX_LISTED = 1000  # commands that "the last N commands" may ask for

_HINTS = frozenset(
    "command commands run ran executed execute typed type launched launch invoked invoke failed"
    " fails here folder directory do done".split()
)
_FILLER = STOP_WORDS | frozenset("just again exactly everything anything please ok".split())
_NOW = r"(?:this|the\s+current|the\s+present|my\s+current|the\s+same)"
_IN = r"(?:in|inside|within|under|from|at|of|for|on)"
_I = r"(?:i|we)"
_RUNS = (
    r"(?:run|ran|execute|executed|type|typed|launch|launched|invoke|invoked|issue|issued|enter"
    r"|entered|try|tried)\b(?!\s+(?:into|out|away|over|across|off|up|down|late|for|against|by)\b)"
)
_BY_ME = rf"(?:did|have|had|do)\s+{_I}\s+(?:\w+ly\s+|just\s+|last\s+|already\s+|ever\s+)?"
_FAILS = r"(?:failed|fails|fail|errored|broke|went\s+wrong|did(?:\s+not|n['’]t)\s+(?:work|succeed))"  # noqa: RUF001
_WORKS = r"(?:succeeded|succeed|worked|passed|went\s+(?:well|through)|did(?:\s+not|n['’]t)\s+fail)"  # noqa: RUF001
_THAT = r"(?:(?:that|which|and)\s+)?(?:(?:have|had|has)\s+)?"


# The forms are compiled at their first use: most questions speak of something else.
@cache
def _form(text: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w/.-])(?:{text})(?![\w/-])", re.IGNORECASE)


# Places.
_FOLDER = (
    rf"(?:(?:{_IN}\s+)?{_NOW}\s+(?:working\s+)?(?:folder|directory|dir|path)|(?:(?:in|from|right|down)"
    r"\s+)?here)"
)
_PROJECT = rf"(?:{_IN}\s+)?{_NOW}\s+(?:project|repository|repo|code\s?base|checkout|work\s?tree)"
_HERE_BRANCH = rf"(?:{_IN}\s+)?{_NOW}\s+branch"
_BRANCH = (
    r"(?:on|in|from)\s+(?:the\s+)?"
    r"(?:branch\s+(?P<after>[\w./-]*\w)|(?!this\b|that\b|the\b|which\b|what\b|my\b|our\b)"
    r"(?P<before>[\w./-]*\w)\s+branch)"
)
# Results.
_CODE = (
    rf"{_THAT}(?:(?:exited|ended|returned|failed|finished)\s+)?(?:with\s+)?(?:an?\s+|the\s+)?"
    r"(?:exit\s+)?(?:code|status)\s+(?:of\s+)?(?P<code>\d{1,3})"
)
_BAD = rf"{_THAT}{_FAILS}|(?:failed|failing|unsuccessful)(?=\s+commands?\b)"
_GOOD = rf"{_THAT}{_WORKS}|(?:successful)(?=\s+commands?\b)"
_WHICH = r"(?:which|what)\s+(?:\S+\s+)?commands?\s*$"
# What it is about.
_ASK = r"(?:please\s+)?(?:can\s+you\s+)?(?:show|list|give|tell|find|print)(?:\s+me)?(?:\s+all)?"
_LATEST = (
    r"(?:what\s+(?:was|were|is|are)\s+)?(?:(?:the|my|all|of)\s+)*(?:most\s+recent|last|latest|previous"
    r"|recent)(?:\s+(?P<count>\d{1,4}))?(?=\s+(?:\w+\s+)?commands?\b)"
)
_COMMANDS = (
    r"(?:(?:what|which|the|my|all|any|shell|were|are|is|was|of)\s+)*"
    r"commands?\b(?!\s+(?:line|prompt|palette|center|centre|pattern)\b)"
    rf"(?:\s+(?:(?:that|which)\s+)?(?:{_I}\s+(?:have\s+|had\s+|just\s+)?|were\s+|was\s+)?{_RUNS})?"
    rf"(?:\s+{_BY_ME}{_RUNS})?"
)
_WHAT_RAN = (
    rf"(?:what|everything|anything|all|things)\s+(?:that\s+)?(?:else\s+)?"
    rf"(?:{_BY_ME}{_RUNS}|(?:was|were|has\s+been|have\s+been|got)\s+{_RUNS}"
    rf"|{_I}\s+(?:have\s+|had\s+|just\s+)?{_RUNS})"
)
_SOME_RAN = rf"{_BY_ME}{_RUNS}"
_OTHERS = r"(?:did|have|had|do)\s+(?:you|he|she|they)"  # what somebody else ran was not captured
_WHAT_DONE = rf"what\s+(?:all\s+|else\s+)?{_BY_ME}(?:do|done|been\s+doing)"
_WHAT_FAILED = rf"(?:what|which|anything|everything|something)(?=\s+{_THAT}{_FAILS})"


class Here(msgspec.Struct, frozen=True):
    """Where somebody asks from.

    Attributes:
        folders: the working directory, by each of its names; absolute.
        project: the work trees of its repository, or nothing outside one.
        branch: the branch that is checked out there, or "".
    """

    folders: tuple[str, ...]
    project: tuple[str, ...] = ()
    branch: str = ""


class Understood(msgspec.Struct, frozen=True):
    """What was read from a question.

    Attributes:
        ran: where the commands ran, and what came of them.
        since: not before this instant, or None; until: before this one.
        words: what is left of the question; empty where the commands are listed.
        found: whether a command fits; if none does, the question is answered as any other.
    """

    ran: Ran
    since: int | None
    until: int | None
    words: str
    found: bool = True


def understand(question: Question) -> tuple[Question, Understood] | None:
    """Read a question about commands.

    Returns:
        The question that asks for them by filters, and what was understood; None for any other.
    """
    here, text, asked = question.here, question.text, question.ran
    if here is None or not text or len(text) > QUESTION_CHARS:
        return None
    if question.kinds not in ((), (KIND,)):
        return None
    if not asked and _HINTS.isdisjoint(re.findall(r"[a-z]+", text.lower())):
        return None
    reading = _Reading(text, here, question.lens.now)
    if not (reading.says_something() if asked else reading.speaks_of_commands()):
        return None
    since, until = _later(question.since, reading.since), _earlier(question.until, reading.until)
    ran = Ran(
        asked.folders or reading.folders,
        asked.exit or reading.exit,
        asked.branch or reading.branch,
    )
    words = reading.words()
    changed = msgspec.structs.replace(
        question,
        text=words,
        kinds=(KIND,),
        ran=ran,
        since=since,
        until=until,
        limit=min(question.limit, reading.count or question.limit),
        auto=False,
    )
    return changed, Understood(ran, since, until, words)


def says(found: Understood) -> str:
    """What was understood, for people."""
    ran, parts = found.ran, ["commands"]
    if ran.folders:
        places = "' or '".join(ran.folders)
        parts[0] += f" run in '{places}' or below"
    if ran.exit in (FAILED, OK):
        parts.append("that failed" if ran.exit == FAILED else "that succeeded")
    elif ran.exit:
        parts.append(f"that exited with {ran.exit}")
    if ran.branch:
        parts.append(f"on branch '{ran.branch}'")
    if found.since is not None and found.since > instant.START:
        parts.append(f"from {instant.display(found.since)}")
    if found.until is not None and found.until < instant.END:
        parts.append(f"until {instant.display(found.until)}")
    parts.append(f"by '{found.words}'" if found.words else "the latest first")
    return ", ".join(parts)


class _Reading:
    """One question, with what was taken out of it so far."""

    def __init__(self, text: str, here: Here, now: int) -> None:
        self._left = text
        self._of_another = _form(_OTHERS).search(text) is not None
        self.folders: tuple[str, ...] = ()
        self.exit = self.branch = ""
        self._picks = False
        self.since: int | None = None
        self.until: int | None = None
        self.count = 0
        self._times(text, now)
        self._placed = self._places(here)
        self._done = self._take(_WHAT_DONE) is not None
        self._failed = self._take(_WHAT_FAILED) is not None
        self._results()
        latest = self._take(_LATEST)
        if latest is not None and latest["count"]:
            self.count = min(MAX_LISTED, int(latest["count"]))
        self._named = self._take(_COMMANDS) is not None
        self._runs = self._take(_WHAT_RAN) is not None
        if not self._runs and (self._named or self._placed):
            self._runs = self._take(_SOME_RAN) is not None
        self._take(_ASK)

    def speaks_of_commands(self) -> bool:
        """Whether it asks for what was run."""
        left = self.words().split()
        alone = not left
        if self._of_another or len(left) > MAX_LEFT:
            return False
        if self._named:
            told = self._runs or self._picks or bool(self.count)
            near = self._placed or self.since is not None
            return told or (near and len(left) <= FEW_LEFT) or alone
        if self._runs:
            return self._placed or bool(self.exit) or alone
        if self._failed:
            return self._placed or alone
        return self._done and self._placed and alone

    def says_something(self) -> bool:
        """Whether anything was read, where it is settled that commands are asked for."""
        return self._placed or bool(self.exit) or self.since is not None or not self.words()

    def words(self) -> str:
        """What is left, if it says anything."""
        found = [word for word in self._left.split() if not _FILLER.issuperset(_parts(word))]
        return " ".join(found).strip("?!,;: ")

    def _take(self, form: str) -> re.Match[str] | None:
        """Take out the first place that a form fits."""
        found = _form(form).search(self._left)
        if found is not None:
            self._left = self._left[: found.start()] + " " + self._left[found.end() :]
        return found

    def _times(self, text: str, now: int) -> None:
        for period in reversed(periods(text, now=now)):
            start, end = period.span
            self._left = self._left[:start] + " " + self._left[end:]
            since, until = self.since, self.until
            self.since = period.start if since is None else min(since, period.start)
            self.until = period.end if until is None else max(until, period.end)

    def _places(self, here: Here) -> bool:
        if here.project and self._take(_PROJECT) is not None:
            self.folders = here.project
        if self._take(_FOLDER) is not None:
            self.folders = here.folders
        if here.branch and self._take(_HERE_BRANCH) is not None:
            self.branch = here.branch
        elif (named := self._take(_BRANCH)) is not None:
            self.branch = named["after"] or named["before"]
        return bool(self.folders or self.branch)

    def _results(self) -> None:
        if (code := self._take(_CODE)) is not None:
            self.exit = str(int(code["code"]))
            self._picks = True
            return
        for form, result in ((_GOOD, OK), (_BAD, FAILED)):
            if (found := self._take(form)) is not None:
                self.exit = result
                self._picks = _picks(found)
                return


def _picks(found: re.Match[str]) -> bool:
    """Whether a result picks commands out: "commands that failed", not "the command fails"."""
    before, behind = found.string[: found.start()], found.string[found.end() :]
    return (
        found[0].lower().startswith(("that ", "which "))
        or behind.lstrip().lower().startswith("command")
        or _form(_WHICH).search(before) is not None
    )


def _parts(word: str) -> list[str]:
    return re.findall(r"[^\W_]+", word.lower())


def _later(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)


def _earlier(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)

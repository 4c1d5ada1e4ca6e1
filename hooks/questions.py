"""Questions: the one place that makes them, for the command line, programs and agents.

Each door reads what was asked in its own form and hands it over as instants, names and numbers;
what can be asked, by whom, and what becomes of it, is decided here.  Hooks that only look at what
stands come by as well, so the ranking is imported where a question is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.objects import instant
from remem.objects.errors import UsageError
from remem.objects.views import INCLUDABLE, VIEWS, Lens

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from remem.index.asked import Here
    from remem.index.context import Block
    from remem.index.hits import Answer, Question
    from remem.index.pinned import Standing
    from remem.index.ran import Ran
    from remem.objects.errors import ScopeRefused
    from remem.objects.scope import Grant
    from remem.objects.store import Store

MAX_EXIT_DIGITS = 10


def lens(
    view: str | None = None,
    *,
    as_of: int | None = None,
    known_at: int | None = None,
    include: Collection[str] = (),
    may_include: bool,
    refused: Callable[[], ScopeRefused],
) -> Lens:
    """How the store is looked at.

    Args:
        view: now, history or changes; None for ``now``.
        as_of: what was true then, microseconds UTC.
        known_at: what the store believed then.
        include: statuses that are shown although they are held back, each asked for by its name.
        may_include: whether who asks may see those: the owner, and who reviews.
        refused: makes the error for who may not, once it is in the audit chain.

    Raises:
        UsageError: there is no such view or status.
        ScopeRefused: who asks may not see what is held back.
    """
    if view not in (None, *VIEWS):
        raise UsageError(f"'{view}' is no view", hint="one of " + ", ".join(VIEWS))
    unknown = sorted(set(include) - INCLUDABLE)
    if unknown:
        raise UsageError(
            f"'{unknown[0][:40]}' is no status that is held back",
            hint="some of " + ", ".join(sorted(INCLUDABLE)),
        )
    if include and not may_include:
        raise refused()
    return Lens(
        instant.now(), view or "now", as_of=as_of, known_at=known_at, include=frozenset(include)
    )


def of_commands(
    folders: Sequence[str], exit: str, branch: str, kinds: Sequence[str]
) -> tuple[Ran, tuple[str, ...]]:
    """What is asked of commands, and the kinds that are left: commands alone.

    Args:
        folders: the folder in which they ran, by all its names; absolute paths.
        exit: failed, ok, an exit status, or "".
        branch: the branch that was checked out, or "".
        kinds: the kinds that are asked for.

    Raises:
        UsageError: the exit status is none, or other kinds are asked for.
    """
    from remem.index.ran import FAILED, KIND, OK, Ran

    wanted = exit.strip().lower()
    if wanted and wanted not in (FAILED, OK):
        if not (wanted.isascii() and wanted.isdigit()) or len(wanted) > MAX_EXIT_DIGITS:
            raise UsageError(
                f"'{exit[:40]}' is no exit status", hint=f"'{FAILED}', '{OK}' or a number"
            )
        wanted = str(int(wanted))
    ran = Ran(tuple(folders), wanted, branch.strip())
    others = [kind for kind in kinds if kind != KIND]
    if ran and others:
        raise UsageError(
            f"a folder, an exit status and a branch are asked of commands, not of '{others[0]}'"
        )
    return ran, (KIND,) if ran else tuple(kinds)


def make(
    text: str,
    lens: Lens,
    *,
    limit: int,
    mode: str,
    kinds: Sequence[str] = (),
    role: str = "",
    since: int | None = None,
    until: int | None = None,
    why: bool = False,
    auto: bool = False,
    ran: Ran | None = None,
    here: Here | None = None,
) -> Question:
    """A question; see `remem.index.hits.Question`.

    Raises:
        UsageError: there is no such mode, it wants too few or too many hits, or ends before it
            begins.
    """
    from remem.index.hits import MODES, Question
    from remem.index.ran import Ran

    if mode not in MODES:
        raise UsageError(f"'{mode}' is no mode", hint="one of " + ", ".join(MODES))
    _check_limit(limit)
    if since is not None and until is not None and until <= since:
        raise UsageError("'until' is not after 'since'")
    return Question(
        text.strip(),
        lens,
        limit=limit,
        mode=mode,
        kinds=tuple(kinds),
        role=role,
        since=since,
        until=until,
        why=why,
        auto=auto,
        ran=Ran() if ran is None else ran,
        here=here,
    )


def check(question: Question) -> None:
    """Raise for a question that cannot be asked as it stands.

    Raises:
        UsageError: it is empty or too long, or wants too few or too many hits.
    """
    from remem.index.hits import check_size

    if question.is_empty:
        raise UsageError("the question is empty", hint="ask in some words, or give a filter")
    check_size(question)
    _check_limit(question.limit)


def _check_limit(limit: int) -> None:
    from remem.index.hits import MAX_LIMIT

    if not 0 < limit <= MAX_LIMIT:
        raise UsageError(f"the limit must be between 1 and {MAX_LIMIT:,}")


class Size:
    """How large a context may be, and what stands in it.

    Attributes:
        budget: at most so many characters, or tokens.
        tokens: count tokens, 4 bytes of UTF-8 each.
        evidence: observations too, not only memories.
        markdown: headings as Markdown has them.
    """

    __slots__ = ("budget", "evidence", "markdown", "tokens")

    def __init__(
        self, budget: int, *, tokens: bool = False, evidence: bool = True, markdown: bool = True
    ) -> None:
        """See the class.

        Raises:
            UsageError: the budget is negative.
        """
        if budget < 0:
            raise UsageError("a budget cannot be negative")
        self.budget = budget
        self.tokens = tokens
        self.evidence = evidence
        self.markdown = markdown


def for_context(text: str, lens: Lens, *, mode: str, auto: bool) -> Question:
    """The question whose answer makes a context."""
    from remem.index.context import CANDIDATES

    return make(text, lens, limit=CANDIDATES, mode=mode, auto=auto)


def pack(
    store: Store, grant: Grant, question: Question, found: Answer, size: Size
) -> tuple[Block, Standing]:
    """The context of an answer: pins word for word, what is due, memories, evidence.

    Returns:
        The block, and what of it stands there whatever was asked.

    Raises:
        OverBudget: the pins alone are larger; none of them is left out.
    """
    from remem.index import context, pinned

    standing = pinned.standing(store, grant, question.lens, question.text)
    block = context.build(
        found.hits,
        standing=standing,
        budget=size.budget,
        tokens=size.tokens,
        fmt="markdown" if size.markdown else "text",
        evidence=size.evidence,
    )
    return block, standing

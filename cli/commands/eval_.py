"""remem eval: questions with the answers that they must and must not get.

The format of the file is described in remem-eval(1).
"""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import msgspec

from remem.cli import reading, times
from remem.cli.plain import one_line
from remem.hooks import questions
from remem.index.recall import Searcher
from remem.objects.errors import BadInput, UsageError
from remem.objects.views import VIEWS

if TYPE_CHECKING:
    from remem.cli.context import Context
    from remem.cli.describe import Json
    from remem.index.hits import Hit, Question
    from remem.objects.scope import Grant

DEPTH = 10  # hits that a case looks at unless it says otherwise
MAX_DEPTH = 10_000
CONTROLS = (
    "must_retrieve",
    "must_not_retrieve",
    "must_rank_above",
)


class Above(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Two texts of which the first must stand above the second."""

    above: str
    below: str


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One question and what its answer must look like."""

    query: str
    name: str = ""
    must_retrieve: list[str] = []
    must_not_retrieve: list[str] = []
    must_rank_above: list[Above] = []
    view: str | None = None
    as_of: str | None = None
    known_at: str | None = None
    collection: str | None = None
    all_collections: bool = False
    kind: list[str] = []
    k: int = DEPTH


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of cases."""

    case: list[Case]


def run(context: Context, *, file: str, mode: str | None) -> int:
    """Ask each question and name what its answer lacks or holds too much."""
    cases = read(file)
    store = context.store()
    engine, mode = reading.open_engine(context, store, mode=mode, all_collections=True, warm=True)
    results: list[Json] = []
    for number, case in enumerate(cases, 1):
        question = _question(context, case, number, mode)
        searcher = Searcher(store, _grant(context, case), engine.dense)
        answer = searcher.ask(question)
        misses = check(case, answer.hits)
        results.append(
            {
                "case": case.name or f"case {number}",
                "query": case.query,
                "view": answer.view,
                "ok": not misses,
                "misses": misses,
            }
        )
    failed = [result for result in results if not result["ok"]]
    if context.json:
        context.emit({"cases": len(cases), "failed": len(failed), "results": results})
    else:
        _print(context, results, len(failed))
    return 1 if failed else 0


def read(path: str) -> list[Case]:
    """The cases of a file.

    Raises:
        BadInput: it does not parse, or a case asks for nothing or for what there is not.
    """
    with open(path, "rb") as stream:
        data = stream.read()
    try:
        cases = msgspec.convert(tomllib.loads(data.decode()), File).case
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise BadInput(f"'{path}': {error}", hint="remem-eval(1) describes the format") from error
    for number, case in enumerate(cases, 1):
        where = f"'{path}': case {number}"
        if not any(getattr(case, name) for name in CONTROLS):
            raise BadInput(f"{where} demands nothing", hint="one of " + ", ".join(CONTROLS))
        texts = [*case.must_retrieve, *case.must_not_retrieve]
        texts += [text for pair in case.must_rank_above for text in (pair.above, pair.below)]
        if not case.query.strip() or not all(text.strip() for text in texts):
            raise BadInput(f"{where} has an empty text")
        if case.view is not None and case.view not in VIEWS:
            raise BadInput(f"{where}: '{case.view}' is no view", hint="one of " + ", ".join(VIEWS))
        if not 1 <= case.k <= MAX_DEPTH:
            raise BadInput(f"{where}: k must be between 1 and {MAX_DEPTH:,}")
    if not cases:
        raise BadInput(f"'{path}' has no case")
    return cases


def check(case: Case, hits: list[Hit]) -> list[str]:
    """What an answer lacks, or holds and must not; empty when the case holds."""
    misses = []
    for wanted in case.must_retrieve:
        if _place(wanted, hits) is None:
            misses.append(f"not in the first {case.k}: {wanted}")
    for unwanted in case.must_not_retrieve:
        place = _place(unwanted, hits)
        if place is not None:
            misses.append(f"must not come, stands at {place + 1}: {unwanted}")
    for pair in case.must_rank_above:
        above, below = _place(pair.above, hits), _place(pair.below, hits)
        if above is None:
            misses.append(f"not in the first {case.k}: {pair.above}")
        elif below is not None and below <= above:
            misses.append(f"at {above + 1}: {pair.above}, yet at {below + 1}: {pair.below}")
    return misses


def _place(wanted: str, hits: list[Hit]) -> int | None:
    """Where the first hit stands that a text names: by its id, or by words of its text."""
    folded = " ".join(wanted.casefold().split())
    hexed = len(folded) >= 7 and all(c in "0123456789abcdef" for c in folded)
    for place, hit in enumerate(hits):
        if hexed and (hit.id.hex().startswith(folded) or hit.ref.hex().startswith(folded)):
            return place
        if folded in " ".join(hit.obj.text.casefold().split()):
            return place
    return None


def _question(context: Context, case: Case, number: int, mode: str) -> Question:
    try:
        as_of, known_at = (times.as_of(context, t) for t in (case.as_of, case.known_at))
    except UsageError as error:
        raise BadInput(f"case {number}: {error}") from error
    return questions.make(
        case.query,
        reading.looked(context, case.view, as_of, known_at, ()),
        limit=case.k,
        mode=mode,
        kinds=case.kind,
        auto=case.view is None,
    )


def _grant(context: Context, case: Case) -> Grant:
    grant = context.grant(all_collections=case.all_collections)
    if case.collection is not None:
        if grant.collections is not None and context.bound is not None:
            wide = context.bound.collections
            if wide is not None and case.collection not in wide:
                raise context.refused(
                    f"a case names a collection that '{grant.principal}' may not read",
                    "scope_refused",
                )
        grant = msgspec.structs.replace(grant, collections=(case.collection,))
    return grant


def _print(context: Context, results: list[Json], failed: int) -> None:
    for result in results:
        if result["ok"]:
            continue
        context.out(f"MISS  {one_line(str(result['case']))}: {one_line(str(result['query']))}")
        misses = result["misses"]
        assert isinstance(misses, list)
        for miss in misses:
            context.out(f"      {one_line(str(miss))}")
    context.out(f"{len(results) - failed} of {len(results)} cases hold")

"""remem recall: find what bears on a question."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from remem.cli import reading
from remem.cli.context import Context
from remem.cli.hits import answer_value, hit_lines
from remem.index.recall import MODES, Question, Searcher
from remem.objects import instant
from remem.objects.errors import BadInput, RememError, UsageError
from remem.objects.views import VIEWS, Lens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.index.engine import Engine

MAX_QUERY = 100_000  # characters; more cannot be a question
MAX_LIMIT = 10_000


def run(
    context: Context,
    *,
    query: list[str],
    limit: int | None,
    mode: str | None,
    view: str | None,
    as_of: str | None,
    known_at: str | None,
    kind: list[str],
    role: str | None,
    since: str | None,
    until: str | None,
    all_collections: bool,
    why: bool,
    full: bool,
    batch: str | None,
) -> int:
    """Answer the question, or each question of a batch."""
    if batch is not None and query:
        raise UsageError("give either QUERY or --batch, not both")
    store = context.store()
    lens = reading.lens_of(context, view=view, as_of=as_of, known_at=known_at)
    start = end = None
    if since is not None or until is not None:
        from remem.cli.times import start_of

        start, end = start_of(context, since), start_of(context, until)
        if start is not None and end is not None and end <= start:
            raise UsageError("--until is not after --since")
    question = Question(
        " ".join(query),
        lens,
        limit=_bounded(context.settings.number("recall.limit") if limit is None else limit),
        kinds=tuple(kind),
        role=role or "",
        since=start,
        until=end,
        why=why,
        auto=view is None,
    )
    if batch is None:
        _check_query(question.text)
    engine, mode = reading.open_engine(
        context, store, mode=mode, all_collections=all_collections, warm=batch is not None
    )
    if not reading.known_scope(context, store, all_collections=all_collections):
        engine.warnings.append("unknown scope")
    if batch is not None:
        return _batch(context, engine, question, mode, batch, all_collections)
    answer = engine.searcher.ask(_with(question, mode=mode))
    if answer.degraded:
        context.note(f"degraded: {answer.degraded}")
    reading.say_view(context, answer)
    if context.json:
        context.emit(answer_value(question, answer))
    else:
        for hit in answer.hits:
            for line in hit_lines(hit, question, full=full):
                context.out(line)
    return 0 if answer.hits else 1


def _check_query(text: str) -> None:
    if not text.strip():
        raise UsageError("the question is empty", hint="remem recall 'some words'")
    if len(text) > MAX_QUERY:
        raise UsageError(f"the question has {len(text):,} characters, at most {MAX_QUERY:,} do")


def _bounded(limit: int) -> int:
    if not 0 < limit <= MAX_LIMIT:
        raise UsageError(f"--limit must be between 1 and {MAX_LIMIT:,}")
    return limit


def _with(question: Question, **changes: object) -> Question:
    import msgspec

    return msgspec.structs.replace(question, **changes)


def _another(context: Context, mode: str, all_collections: bool) -> Searcher:
    """The searcher of another mode than that of the command line."""
    engine, _ = reading.open_engine(
        context, context.store(), mode=mode, all_collections=all_collections, warm=True
    )
    return engine.searcher


def _batch(
    context: Context,
    engine: Engine,
    default: Question,
    mode: str,
    path: str,
    all_collections: bool,
) -> int:
    """Answer JSON lines of questions; one result a line, errors included."""
    import msgspec

    code = 0
    searchers: dict[str, Searcher] = {mode: engine.searcher}
    for where, line in _lines(path):
        value: dict[str, object] = {}
        try:
            value = _object(line, where)
            question, wanted = _question(context, value, default, mode)
            searcher = searchers.get(wanted)
            if searcher is None:
                searcher = _another(context, wanted, all_collections)
                searchers[wanted] = searcher
            answer = searcher.ask(_with(question, mode=wanted))
            result = {"id": value.get("id"), **answer_value(question, answer)}
        except RememError as error:
            code = max(code, error.exit_code)
            result = {"id": value.get("id"), "error": str(error), "where": where}
        sys.stdout.buffer.write(msgspec.json.encode(result) + b"\n")
    return code


def _lines(path: str) -> Iterator[tuple[str, bytes]]:
    stream = sys.stdin.buffer if path == "-" else open(path, "rb")
    with stream:
        for number, line in enumerate(stream, 1):
            if line.strip():
                yield f"{path}:{number}", line


def _object(line: bytes, where: str) -> dict[str, object]:
    import msgspec

    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{where}: not valid JSON: {error}") from error
    if not isinstance(value, dict) or not isinstance(value.get("query"), str):
        raise BadInput(f"{where}: not an object with a 'query'")
    return value


_NAMES = frozenset("id query limit mode view as_of known_at kind role since until why".split())


def _question(
    context: Context, value: dict[str, object], default: Question, mode: str
) -> tuple[Question, str]:
    """A question of a batch: its own options over those of the command line."""
    from remem.cli import times

    unknown = sorted(value.keys() - _NAMES)
    if unknown:
        raise BadInput(f"unknown option '{unknown[0]}'", hint="one of " + ", ".join(sorted(_NAMES)))
    text = {n: v for n, v in value.items() if n in ("mode", "view", "role", "since", "until")}
    text |= {n: value[n] for n in ("as_of", "known_at") if n in value}
    wrong = [n for n, v in text.items() if v is not None and not isinstance(v, str)]
    if wrong:
        raise BadInput(f"'{wrong[0]}' must be text")
    wanted = str(value.get("mode") or mode)
    view = str(value.get("view") or default.lens.view)
    if wanted not in MODES or view not in VIEWS:
        raise BadInput(f"no such mode or view: '{wanted}', '{view}'")
    limit = value.get("limit", default.limit)
    if not isinstance(limit, int):
        raise BadInput("'limit' must be a number")
    kinds = value.get("kind", list(default.kinds))
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not isinstance(kinds, list) or not all(isinstance(k, str) for k in kinds):
        raise BadInput("'kind' must be text or a list of texts")
    query = str(value["query"])
    _check_query(query)

    def time(name: str, inherited: int | None, *, end: bool) -> int | None:
        written = value.get(name)
        if written is None:
            return inherited
        read = times.as_of if end else times.start_of
        return read(context, str(written))

    lens = Lens(
        instant.now(),
        view,
        as_of=time("as_of", default.lens.as_of, end=True),
        known_at=time("known_at", default.lens.known_at, end=True),
        include=default.lens.include,
    )
    question = Question(
        query,
        lens,
        limit=_bounded(limit),
        kinds=tuple(kinds),
        role=str(value.get("role") or default.role),
        since=time("since", default.since, end=False),
        until=time("until", default.until, end=False),
        why=bool(value.get("why", default.why)),
        auto=default.auto and value.get("view") is None,
    )
    return question, wanted

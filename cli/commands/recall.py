"""remem recall: find what bears on a question."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from remem.cli import here, reading
from remem.cli.context import Context
from remem.cli.hits import answer_value, hit_lines
from remem.hooks import questions
from remem.index import confidence
from remem.index.ran import Ran
from remem.objects.errors import BadInput, RememError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.index.engine import Engine
    from remem.index.recall import Question, Searcher


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
    cwd: str | None,
    exit: str | None,
    branch: str | None,
    include: list[str],
    all_collections: bool,
    why: bool,
    full: bool,
    batch: str | None,
) -> int:
    """Answer the question, or each question of a batch."""
    if batch is not None and query:
        raise UsageError("give either QUERY or --batch, not both")
    store = context.store()
    lens = reading.lens_of(context, view=view, as_of=as_of, known_at=known_at, include=include)
    start = end = None
    if since is not None or until is not None:
        from remem.cli.times import start_of

        start, end = start_of(context, since), start_of(context, until)
    ran, kinds = here.asked_of(context, cwd, exit, branch, kind)
    question = questions.make(
        " ".join(query),
        lens,
        limit=context.settings.number("recall.limit") if limit is None else limit,
        mode=mode or context.settings.text("recall.mode"),
        kinds=kinds,
        role=role or "",
        since=start,
        until=end,
        why=why,
        auto=view is None,
        ran=ran,
        here=here.here(context),
    )
    if batch is None:
        questions.check(question)
    engine, _ = reading.open_engine(
        context, store, mode=question.mode, all_collections=all_collections, warm=batch is not None
    )
    if not reading.known_scope(context, store, all_collections=all_collections):
        engine.warnings.append("unknown scope")
    if batch is not None:
        return _batch(context, engine, question, batch, all_collections)
    answer = engine.searcher.ask(question)
    if answer.degraded:
        context.note(f"degraded: {answer.degraded}")
    reading.say_view(context, answer)
    if answer.understood is not None:
        here.say_understood(context, answer.understood)
    if not answer.hits and cwd is not None:
        here.say_elsewhere(context, cwd, all_collections=all_collections)
    if context.json:
        context.emit(answer_value(question, answer))
    else:
        for hit in answer.hits:
            read = answer.understood
            listed = not question.text or (read is not None and read.found and not read.words)
            for line in hit_lines(hit, question, full=full, scored=not listed):
                context.out(line)
        if answer.hits and question.text and answer.understood is None:
            if answer.confidence < confidence.LOW:
                context.note("nothing here answers this well; the best are shown")
    return 0 if answer.hits else 1


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
    path: str,
    all_collections: bool,
) -> int:
    """Answer JSON lines of questions; one result a line, errors included."""
    import msgspec

    from remem.hooks import shaping

    code = 0
    searchers: dict[str, Searcher] = {default.mode: engine.searcher}
    for where, line in _lines(path):
        value: dict[str, object] = {}
        try:
            value = _object(line, where)
            question = _question(context, value, default)
            searcher = searchers.get(question.mode)
            if searcher is None:
                searcher = _another(context, question.mode, all_collections)
                searchers[question.mode] = searcher
            answer = searcher.ask(question)
            result = {"id": value.get("id"), **shaping.fields(answer_value(question, answer))}
        except RememError as error:
            code = max(code, error.exit_code)
            told = {"error": str(error), "kind": error.kind, "where": where}
            result = {"id": value.get("id"), **told}
        context.stdout.write(msgspec.json.encode(result) + b"\n")
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


_PLACED = ("cwd", "exit", "branch")
_NAMES = frozenset(
    "id query limit mode view as_of known_at kind role since until cwd exit branch include"
    " why".split()
)


def _question(context: Context, value: dict[str, object], default: Question) -> Question:
    """A question of a batch: its own options over those of the command line."""
    from remem.cli import times

    unknown = sorted(value.keys() - _NAMES)
    if unknown:
        raise BadInput(f"unknown option '{unknown[0]}'", hint="one of " + ", ".join(sorted(_NAMES)))
    texts = ("mode", "view", "role", "since", "until", *_PLACED)
    text = {n: v for n, v in value.items() if n in texts}
    text |= {n: value[n] for n in ("as_of", "known_at") if n in value}
    wrong = [n for n, v in text.items() if v is not None and not isinstance(v, str)]
    if wrong:
        raise BadInput(f"'{wrong[0]}' must be text")
    limit = value.get("limit", default.limit)
    if not isinstance(limit, int):
        raise BadInput("'limit' must be a number")
    kinds = tuple(_words(value.get("kind", list(default.kinds)), "kind"))
    ran = default.ran
    if any(value.get(name) is not None for name in _PLACED):
        own = {name: str(text[name]) for name in _PLACED if text.get(name) is not None}
        given, kinds = here.asked_of(
            context, own.get("cwd"), own.get("exit"), own.get("branch"), kinds
        )
        ran = Ran(given.folders or ran.folders, given.exit or ran.exit, given.branch or ran.branch)
    include = sorted(default.lens.include)
    if value.get("include") is not None:
        include = _words(value["include"], "include")

    def time(name: str, inherited: int | None, *, end: bool) -> int | None:
        written = value.get(name)
        if written is None:
            return inherited
        read = times.as_of if end else times.start_of
        return read(context, str(written))

    lens = reading.looked(
        context,
        str(value.get("view") or default.lens.view),
        time("as_of", default.lens.as_of, end=True),
        time("known_at", default.lens.known_at, end=True),
        include,
    )
    question = questions.make(
        str(value["query"]),
        lens,
        limit=limit,
        mode=str(value.get("mode") or default.mode),
        kinds=kinds,
        role=str(value.get("role") or default.role),
        since=time("since", default.since, end=False),
        until=time("until", default.until, end=False),
        why=bool(value.get("why", default.why)),
        auto=default.auto and value.get("view") is None,
        ran=ran,
        here=default.here,
    )
    questions.check(question)
    return question


def _words(value: object, name: str) -> list[str]:
    """An option that is a text or a list of texts.

    Raises:
        BadInput: it is something else.
    """
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise BadInput(f"'{name}' must be text or a list of texts")
    return words

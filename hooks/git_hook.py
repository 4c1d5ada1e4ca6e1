"""From what the git hooks noted to evidence.

A hook notes the names of things and no more: that is all that a commit waits for.  The commits are
read here, outside of any transaction; the files of the spool are then taken in one transaction and
removed.  A process that dies in between leaves them, and taking them again changes nothing: every
record has the id that git gives it, and what was replaced is replaced already.

Source: githooks(5); remem-hook(1), GIT.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from remem.hooks import git_spool
from remem.hooks.git_settle import Dropped, Rewrite, settle
from remem.hooks.identity import collection_of
from remem.hooks.ingest import Sum
from remem.hooks.sources import git as source
from remem.hooks.sources._git import Git
from remem.objects.admit import DEFAULT_LIMIT_B
from remem.objects.derive.outline import ID_END
from remem.objects.errors import BadInput
from remem.objects.model import Incoming, Rejected
from remem.objects.scope import DEFAULT_AGENT, DEFAULT_SESSION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from remem.hooks.git_spool import Event
    from remem.objects.scope import Actor
    from remem.objects.store import Store

CHECKOUT = "checkout"  # kind of the record of a branch switch
MAX_BROUGHT = 1000  # commits that one merge or rebase may bring; the newest are taken
MAX_TAGS = 1000  # newest tags that are looked at
AT_ONCE = 200  # files of events that are taken in one transaction
AT_ONCE_IN_TIME = 10  # the same where the time is short

_NULL = "0"


class Drained(Sum):
    """What became of the events.

    Attributes:
        events: events that were read.
        rewritten: commits that were replaced by their later form.
        reverted: commits that were closed, or opened again, by a revert.
        dropped: commits that were closed because a rebase left them out.
        gone: commits or repositories that were gone before they were read.
        torn: files with an event that its hook could not finish.
        left: whether more waits, because the time was over.
    """

    events: int = 0
    rewritten: int = 0
    reverted: int = 0
    dropped: int = 0
    gone: int = 0
    torn: int = 0
    left: bool = False


class _Repository(msgspec.Struct):
    """A repository with what is asked of it.

    Attributes:
        git: runs git there.
        uri: source of its records.
        collection: where they belong.
        wanted: commits, in the order of the events.
        records: those that were read, by name.
    """

    git: Git
    uri: str
    collection: str
    wanted: dict[str, None] = {}
    records: dict[str, Incoming] = {}


class _Work(msgspec.Struct):
    """What some files of the spool ask for; tags by the repository that has them."""

    records: list[Incoming | Rejected] = []
    tags: dict[str, list[Incoming]] = {}
    rewrites: list[Rewrite] = []
    dropped: list[Dropped] = []
    gone: int = 0


def drain(
    store: Store,
    actor: Actor,
    spool: str,
    *,
    env: Mapping[str, str] | None = None,
    limit_b: int = DEFAULT_LIMIT_B,
    ignored: Callable[[str], bool] | None = None,
    place: Callable[[str], str] | None = None,
    budget_s: float | None = None,
    dry_run: bool = False,
) -> Drained:
    """Take in what the hooks noted, and remove it from the spool.

    Args:
        store: open for writing.
        actor: who writes; each commit goes to the collection of its repository.
        spool: the folder of the hooks' files.
        env: the caller's environment, without which git does not find its programs.
        limit_b: largest text, bytes.
        ignored: whether nothing may be kept of a folder.
        place: the collection of a folder, by default that of its repository.
        budget_s: stop after about so many seconds.
        dry_run: the store keeps nothing, so the spool is left as it is.

    Raises:
        GitMissing: there is no git; the events wait.
    """
    total = Drained()
    paths = git_spool.waiting(spool)
    at_once = AT_ONCE if budget_s is None else AT_ONCE_IN_TIME
    began = time.monotonic()
    for at in range(0, len(paths), at_once):
        if at and budget_s is not None and time.monotonic() - began > budget_s:
            total.left = True
            break
        taken, wanted = [], []
        for path in paths[at : at + at_once]:
            events, rest = git_spool.read(path)
            if rest and not git_spool.is_old(path):
                continue  # a hook is writing it
            taken.append(path)
            total.events += len(events)
            total.torn += bool(rest)
            for event in events:
                if ignored is not None and ignored(event.folder):
                    total.read += 1
                    total.skipped += 1
                else:
                    wanted.append(event)
        work = _collect(wanted, env or {}, place or _collection)
        part = store.write(actor, lambda tx, work=work: settle(tx, work, limit_b))  # type: ignore[misc]
        total.add(part.sum)
        total.rewritten += part.rewritten
        total.reverted += part.reverted
        total.dropped += part.dropped
        total.gone += work.gone
        for path in taken if not dry_run else ():
            with suppress(FileNotFoundError):  # another process took it in as well
                os.unlink(path)
    return total


def _collection(folder: str) -> str:
    return collection_of(folder)[0]


def _collect(events: list[Event], env: Mapping[str, str], place: Callable[[str], str]) -> _Work:
    """Read from git what events are about; each repository is asked once for all its commits."""
    work = _Work()
    found: dict[str, _Repository | None] = {}
    asked: list[tuple[Event, _Repository, list[str]]] = []
    for event in events:
        if event.git_dir not in found:
            found[event.git_dir] = _repository(event, env, place)
        repository = found[event.git_dir]
        if repository is None:
            work.gone += 1
            continue
        shas = [] if event.name == "post-checkout" else _shas(repository.git, event)
        repository.wanted.update(dict.fromkeys(shas))
        asked.append((event, repository, shas))
    for repository in filter(None, found.values()):
        _read(repository, work)
    for event, repository, shas in asked:
        names = [name for sha in shas for name in (sha, sha + ID_END)]
        records = [repository.records.pop(name, None) for name in names]
        if event.name == "post-checkout":
            records = [_switch(event, repository.uri)]
        for record in records:
            if isinstance(record, Incoming):
                _put(record, repository.collection)
            if record is not None:
                work.records.append(record)
        work.dropped += _dropped(event, repository)
        why = "amended" if event.args[:1] == ["amend"] else "rebased"
        for old, new in event.rewritten:
            # Git says of a commit that was skipped first that it became what the rebase began from.
            if old != new != event.onto:
                one = Rewrite(repository.collection, repository.uri, old, new, event.at, why)
                work.rewrites.append(one)
    return work


def _read(repository: _Repository, work: _Work) -> None:
    """Read the commits and the tags of a repository."""
    git, uri = repository.git, repository.uri
    if repository.wanted:
        for record in source.named(git, uri, list(repository.wanted)):
            if isinstance(record, Incoming):
                repository.records[record.source_id] = record
            else:
                work.records.append(record)
    work.gone += len(repository.wanted.keys() - repository.records.keys())
    if uri not in work.tags:
        newest = source.tags(git, uri, f"--count={MAX_TAGS}", "--sort=-creatordate")
        work.tags[uri] = [tag for tag in newest if isinstance(tag, Incoming)]
        for tag in work.tags[uri]:
            _put(tag, repository.collection)


def _put(record: Incoming, collection: str) -> None:
    """Let a record belong where an import of the history puts it."""
    record.collection = collection
    record.agent = DEFAULT_AGENT
    record.session = DEFAULT_SESSION


def _repository(
    event: Event, env: Mapping[str, str], place: Callable[[str], str]
) -> _Repository | None:
    """Open the repository of an event, if it is there; a work tree may be gone while it is."""
    main = event.git_dir.partition("/worktrees/")[0]
    for folder in (event.folder, event.git_dir, main):
        with suppress(BadInput):  # without git at all, the events wait
            git = source.repository(folder, env)
            # A folder may belong to another repository by now.
            common = git.text("rev-parse", "--path-format=absolute", "--git-common-dir")
            if os.path.realpath(common) == os.path.realpath(main):
                return _Repository(git, source.uri_of(git), place(folder))
    return None


def _shas(git: Git, event: Event) -> list[str]:
    """Commits that an event brought, oldest first."""
    brought: list[str] = []
    if event.onto and event.name in ("post-merge", "post-rewrite"):
        bounds = (f"--max-count={MAX_BROUGHT}", event.head, f"^{event.onto}")
        brought = git.text("rev-list", "--date-order", *bounds).split()[::-1]
    rewritten = [new for _, new in event.rewritten]
    head = [] if event.args[:1] == ["1"] and event.name == "post-merge" else [event.head]
    return list(dict.fromkeys([*brought, *rewritten, *head]))


def _dropped(event: Event, repository: _Repository) -> list[Dropped]:
    """The commits that a rebase left out, unless something still leads to them.

    Git tells of the survivors only: the rest of what led to the old tip is what was left out.
    """
    if not event.tip:
        return []
    bounds = (f"--max-count={MAX_BROUGHT}", event.tip, f"^{event.head}", "--not", "--all")
    left = repository.git.text("rev-list", *bounds).split()
    rewritten = {old for old, new in event.rewritten if new != event.onto}
    return [
        Dropped(repository.collection, repository.uri, sha, event.at)
        for sha in left
        if sha not in rewritten
    ]


def _switch(event: Event, uri: str) -> Incoming | None:
    """The record of a branch switch; None for a checkout that changed no branch."""
    old = event.args[0] if event.args else ""
    if not old.strip(_NULL) or event.before == event.branch:
        return None
    before = _shown(event.before, old)
    branch = _shown(event.branch, event.head)
    meta: dict[str, object] = {"branch": branch, "from": before, "commit": event.head}
    return Incoming(
        text=f"switched from branch {before} to branch {branch}",
        asserted=event.at or None,
        offset=0,
        origin="tool",
        source_uri=uri,
        source_id=f"{CHECKOUT}:{event.where}",
        tool=source.TOOL,
        kind=CHECKOUT,
        meta=meta,
        where=event.where,
    )


def _shown(ref: str, sha: str) -> str:
    return ref.removeprefix("refs/heads/") if ref not in ("", "HEAD") else sha[:12]

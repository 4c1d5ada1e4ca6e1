"""What a git hook notes: the script that the hooks run, and the files that it leaves in the spool.

Each hook that runs leaves a file of its own, with one event: a row of fields, each ended by a zero
byte,

    remem-git-1  EVENT  SECONDS  FOLDER  GIT-DIR  HEAD  BRANCH  BEFORE  ONTO  TIP  ARGS  REWRITTEN
    end

as remem-store(5), SPOOL, tells.

Source: githooks(5); remem-hook(1), GIT; remem-store(5), SPOOL.
"""

from __future__ import annotations

import os
import time

import msgspec

from remem.hooks.glance import EVENTS as EVENT_FILES
from remem.hooks.glance import LINES

EVENTS = ("post-commit", "post-merge", "post-checkout", "post-rewrite", "post-applypatch")
TORN_S = 60  # an event that is not complete after so many seconds never will be

_MARK = b"remem-git-1"
_END = b"end"
_FIELDS = 13

SCRIPT = r"""#!/bin/sh
# Notes an event of git for remem, which reads it later: remem-hook(1), GIT.
# usage: sh git-hook SPOOL LIST EVENT [ARGUMENT...]
spool=$1 list=$2 event=$3
shift 3
# Whatever happens, git and its user see nothing of it.
exec >/dev/null 2>&1
trap 'exit 0' 0
case ${REMEM_OFF:-0} in 0) ;; *) exit 0 ;; esac
# Only into a spool of one's own: a repository may have several users.
[ -d "$spool" ] && [ -O "$spool" ] || exit 0
[ "$event" != post-checkout ] || [ "$3" = 1 ] || exit 0
rewritten= onto= tip=
if [ "$event" = post-rewrite ]; then rewritten=$(cat); fi
{ IFS= read -r dir; IFS= read -r head; IFS= read -r branch; IFS= read -r before; } <<END
$(git rev-parse --absolute-git-dir HEAD --symbolic-full-name HEAD '@{-1}' 2>/dev/null)
END
[ -n "$head" ] || exit 0
[ "$before" != '@{-1}' ] || before=
if [ "$list" != all ]; then
	# Hooks that several repositories share note those that are listed.
	common=$dir found=
	if [ -f "$dir/commondir" ]; then
		IFS= read -r common <"$dir/commondir"
		case $common in /*) ;; *) common=$dir/$common ;; esac
	fi
	common=$(cd "$common" && pwd -P) || exit 0
	while IFS= read -r one; do
		if [ "$one" = "$common" ] || [ "$one" = '*' ]; then found=1; fi
	done <"$list"
	[ -n "$found" ] || exit 0
fi
for rebase in "$dir/rebase-merge" "$dir/rebase-apply"; do
	if [ -d "$rebase" ] && [ ! -f "$rebase/applying" ]; then
		# What a rebase makes counts when it is done; one that is given up leaves nothing.
		[ "$event" = post-rewrite ] && [ "$1" = rebase ] || exit 0
		[ ! -f "$rebase/onto" ] || IFS= read -r onto <"$rebase/onto"
		[ ! -f "$rebase/orig-head" ] || IFS= read -r tip <"$rebase/orig-head"
	fi
done
if [ "$event" = post-merge ]; then onto=$(git rev-parse --verify --quiet ORIG_HEAD); fi
now=$(date +%s)
umask 077
printf '%s\0' remem-git-1 "$event" "$now" "$PWD" "$dir" "$head" "$branch" "$before" "$onto" \
	"$tip" "$*" "$rewritten" end >>"$spool/git-$now-$$"
"""


class Event(msgspec.Struct, frozen=True):
    """What a hook noted; see the module for the fields."""

    name: str
    at: int
    folder: str
    git_dir: str
    head: str
    branch: str
    before: str
    onto: str
    tip: str
    args: list[str]
    rewritten: list[tuple[str, str]]
    where: str


def waiting(spool: str) -> list[str]:
    """Paths of the files of events, oldest first."""
    try:
        names = os.listdir(spool)
    except OSError:
        return []
    found = []
    for name in names:
        if name.startswith(EVENT_FILES) and not name.endswith(LINES):
            path = os.path.join(spool, name)
            try:
                found.append((os.stat(path).st_mtime_ns, path))
            except OSError:
                continue  # another drain took it
    return [path for _, path in sorted(found)]


def is_old(path: str) -> bool:
    """Whether nobody has written to a file for long enough."""
    try:
        return time.time() - os.stat(path).st_mtime > TORN_S
    except OSError:
        return False


def read(path: str) -> tuple[list[Event], bytes]:
    """Events of a file, and what is left of one that is not complete."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return [], b""
    *fields, rest = data.split(b"\0")
    events: list[Event] = []
    at = 0
    while at + _FIELDS <= len(fields):
        row = fields[at : at + _FIELDS]
        if row[0] != _MARK or row[-1] != _END:
            return events, data  # not ours, or two of them mixed
        events.append(_event([os.fsdecode(field) for field in row], f"{path}:{at // _FIELDS}"))
        at += _FIELDS
    return events, b"\0".join([*fields[at:], rest])


def _event(row: list[str], where: str) -> Event:
    pairs = [line.split(" ") for line in row[11].split("\n")]
    return Event(
        name=row[1],
        at=int(row[2]) * 1_000_000 if row[2].isdigit() else 0,
        folder=row[3],
        git_dir=row[4],
        head=row[5],
        branch=row[6],
        before=row[7],
        onto=row[8],
        tip=row[9],
        args=row[10].split(" "),
        rewritten=[(pair[0], pair[1]) for pair in pairs if len(pair) >= 2],
        where=os.path.basename(where),
    )

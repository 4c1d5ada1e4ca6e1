"""What a command takes of a principal that is not the owner.

Every command of the table has a row here; one without is the owner's alone, so that a new command
opens nothing by being forgotten.  What a command may do beyond being run, the objects decide: the
grant in every snapshot, `remem.objects.authorship` for every change.

It imports nothing, since it is asked before the command's own module.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

READ, WRITE, PROPOSE, REVIEW = "read", "write", "propose", "review"
OWNER = ("owner",)
BOTH = (READ, WRITE)
IN_FORCE: tuple[str, ...] = ()  # any principal whose token is valid
NOTHING = None  # it opens no store: nobody has to be anybody

# Command, or command and action -> capabilities that it takes, all of them.
NEEDS: dict[str, tuple[str, ...] | None] = {
    "init": OWNER,
    "add": (WRITE,),
    "add --corrects": BOTH,
    "fact": BOTH,
    "import": (WRITE,),
    "import pack": OWNER,
    "revise": BOTH,
    "rollback": BOTH,
    "close": BOTH,
    "reopen": BOTH,
    "undo": BOTH,
    "alias": OWNER,
    "alias list": (READ,),
    "derive": OWNER,
    "jobs": OWNER,
    "jobs list": (READ,),
    "recall": (READ,),
    "context": (READ,),
    "show": (READ,),
    "log": (READ,),
    "why": (READ,),
    "about": (READ,),
    "diff": (READ,),
    "eval": (READ,),
    "pin": OWNER,
    "pins": (READ,),
    "unpin": OWNER,
    "loop": BOTH,
    "loops": (READ,),
    "task": BOTH,
    "task show": (READ,),
    "task list": (READ,),
    "brief": BOTH,
    "promote": BOTH,
    "owner": OWNER,
    "principal": IN_FORCE,
    "draft": (READ,),
    "quarantine": (READ,),
    "quarantine list": (READ, REVIEW),
    "review": (READ, REVIEW),
    "forget": OWNER,
    "purge": OWNER,
    "tombstones": OWNER,
    "hold": OWNER,
    "retain": OWNER,
    "draft list": (READ,),
    "draft show": (READ,),
    "draft resubmit": (READ, PROPOSE),
    "status": (READ,),
    "audit": OWNER,
    "verify": OWNER,
    "doctor": OWNER,
    "reindex": OWNER,
    "export": (READ,),
    "export --all-scopes": OWNER,
    "backup": OWNER,
    "config": OWNER,
    "config list": IN_FORCE,
    "config get": IN_FORCE,
    "config path": IN_FORCE,
    "demo": NOTHING,
    "completion": NOTHING,
    "completion --candidates": (READ,),
    "help": NOTHING,
    "hash-object": BOTH,
    "hash-object -w": (WRITE,),
    "cat-object": (READ,),
    "ls-refs": (READ,),
    "ls-jobs": (READ,),
    "rev-parse": (READ,),
    "consolidate": OWNER,
    "drain": OWNER,
    "hook": OWNER,
    "hook-event": NOTHING,  # it looks itself who asks, and says nothing to anybody
    "mcp": IN_FORCE,
    "project": OWNER,
    "warm": NOTHING,
    "count-objects": (READ,),
}

# Commands of which an option decides: name of the parameter, name of the row where it is given.
_BY_OPTION = {
    "add": ("corrects", "add --corrects"),
    "completion": ("candidates", "completion --candidates"),
    "export": ("all_scopes", "export --all-scopes"),
    "hash-object": ("write", "hash-object -w"),
}
# Commands whose action may be left out: what stands in its place.
_DEFAULT_ACTIONS = {"jobs": "list"}


def needs(name: str, values: Mapping[str, object]) -> tuple[str, ...] | None:
    """The capabilities that a command takes with these parameters; None: it opens no store."""
    if name in _BY_OPTION:
        parameter, row = _BY_OPTION[name]
        if values.get(parameter):
            return NEEDS[row]
    action = values.get("format" if name == "import" else "action") or _DEFAULT_ACTIONS.get(name)
    return NEEDS.get(f"{name} {action}", NEEDS.get(name, OWNER))

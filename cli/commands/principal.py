"""remem principal: who else may read and write this store, where, and by which token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.cli import describe
from remem.cli.plain import one_line
from remem.cli.render import table
from remem.objects import principals
from remem.objects.errors import UsageError
from remem.objects.patterns import Pattern

if TYPE_CHECKING:
    from remem.cli.context import Context
    from remem.cli.describe import Json
    from remem.objects.principals import Principal
    from remem.objects.tx import Tx

ACTIONS = ("add", "list", "revoke", "token")
COLUMNS = ("name", "scope", "can", "made by", "made", "state")


def run(
    context: Context, *, action: str, name: str | None, scope: str | None, can: list[str]
) -> int:
    """Make, list and end principals, and give them new tokens."""
    if action not in ACTIONS:
        raise UsageError(f"'{action}' is no action", hint="one of " + ", ".join(ACTIONS))
    if (name is None) != (action == "list"):
        wants = "takes no name" if action == "list" else "needs the name of a principal"
        raise UsageError(f"{action} {wants}")
    if action != "add" and (scope is not None or can):
        raise UsageError(f"--scope and --can belong to add, not to {action}")
    if action == "list" or name is None:
        return _list(context)
    if action == "add":
        return _add(context, name, scope, can)
    return _revoke(context, name) if action == "revoke" else _token(context, name)


def _add(context: Context, name: str, scope: str | None, can: list[str]) -> int:
    wanted = principals.capabilities(can) if can else ["read"]
    where = principals.parse(scope) if scope is not None else _here(context)
    store = context.store(create=context.bound is None)
    made, token = store.write(context.actor(), lambda tx: principals.add(tx, name, where, wanted))
    with store.read(made.grant) as reader:
        if made.grant.reads and not reader.parts:
            context.note(f"the scope {where} holds nothing yet")
    _say_token(context, made, token)
    return 0


def _here(context: Context) -> Pattern:
    """The present collection, whichever agent and session; those that were named, if any."""
    at = context.scope()
    grant = context.grant()
    return Pattern(at.tenant, at.profile, at.collection, grant.agent, grant.session)


def _token(context: Context, name: str) -> int:
    made, token = context.store().write(context.actor(), lambda tx: principals.renew(tx, name))
    _say_token(context, made, token)
    return 0


def _say_token(context: Context, made: Principal, token: str) -> None:
    """Print the token, the one time that anybody sees it."""
    if context.json:
        context.emit({"name": made.name, **_where(made), "can": made.can, "token": token})
        return
    context.out(token)
    context.note(
        f"'{one_line(made.name)}' may {', '.join(made.can)} in {_words(made.scope)}; the token "
        "is shown once: REMEM_TOKEN, or a file that REMEM_TOKEN_FILE names, carries it"
    )


def _revoke(context: Context, name: str) -> int:
    def change(tx: Tx) -> list[Principal]:
        return principals.revoke(tx, name)

    ended = context.store().write(context.actor(), change)
    if context.json:
        context.emit([one.name for one in ended])
        return 0
    for one in ended:
        context.out(f"{one_line(one.name)} revoked")
    return 0


def _list(context: Context) -> int:
    with context.store(readonly=True).read(context.actor().grant) as reader:
        found = principals.all_of(reader)
        makers = {one.number: one.name for one in found}
        makers[0] = "owner"
    if context.json:
        context.emit([_value(one, makers) for one in found])
    elif found:
        table(context, COLUMNS, [_row(one, makers) for one in found])
    else:
        context.note("there is nobody but the owner")
    return 0


def _value(one: Principal, makers: dict[int, str]) -> Json:
    return {
        "name": one.name,
        **_where(one),
        "can": one.can,
        "parent": makers.get(one.parent),
        "created_at": describe.stamp(one.created),
        "revoked_at": describe.stamp(one.revoked),
    }


def _where(one: Principal) -> Json:
    at = one.scope
    return {
        "pattern": str(at),
        "scope": {
            "tenant": at.tenant,
            "profile": at.profile,
            "collection": at.collection,
            "agent": at.agent,
            "session": at.session,
        },
    }


def _words(pattern: Pattern) -> str:
    """A pattern with its parts named, so that a slash in a name deceives nobody."""
    parts = (("tenant", pattern.tenant), ("profile", pattern.profile))
    open_parts = (
        ("collection", pattern.collection),
        ("agent", pattern.agent),
        ("session", pattern.session),
    )
    named = [f"{part} '{one_line(value)}'" for part, value in parts]
    named += [
        f"every {part}" if value is None else f"{part} '{one_line(value)}'"
        for part, value in open_parts
    ]
    return ", ".join(named)


def _row(one: Principal, makers: dict[int, str]) -> tuple[str, ...]:
    state = "in force"
    if one.revoked is not None:
        state = "revoked " + describe.shown_second(one.revoked)
    return (
        one_line(one.name),
        one_line(str(one.scope)),
        ",".join(one.can),
        one_line(makers.get(one.parent, "-")),
        describe.shown_second(one.created),
        state,
    )

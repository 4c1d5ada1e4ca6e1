"""An agent that is refused in a loop: the chain stays short, and the owner is told of all of it."""

from __future__ import annotations

from remem.objects import principals
from remem.objects.refusals import MOST
from remem.objects.scope import Grant
from remem.objects.store import Store

from .conftest import Runner

EYES = Grant("eyes", "local", "default", ("home",))


def test_what_is_counted_is_told_by_a_note_and_then_by_a_row(filled: Runner) -> None:
    store = Store(str(filled.store))
    for _ in range(MOST + 23):
        principals.refuse(store, EYES, "mcp", "show", "not_found")
    store.close()
    shown = filled("audit", "-n", "500", "--principal", "eyes", code=0)
    assert len(shown.out.splitlines()) == MOST
    assert "23 more refusals of 'eyes' (not_found) are counted" in shown.err
    assert "counted" not in filled("audit", "--principal", "owner", code=0).err
    filled.add("anything else")
    shown = filled("audit", "--action", "refusals", "--json", code=0)
    (row,) = shown.json
    assert (row["principal"], row["surface"], row["outcome"]) == ("eyes", "mcp", "not_found-23")
    assert "counted" not in shown.err
    assert filled("verify", "--json", code=0).json["ok"]

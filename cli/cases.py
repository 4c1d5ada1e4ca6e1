"""What there is to decide on, in words for people.

A case is built in `remem.hooks.cases`.  Nothing here is escaped, except by those who print it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.cli import describe
from remem.hooks.cases import CLAIM as CLAIM
from remem.hooks.cases import OPERATION as OPERATION
from remem.hooks.cases import QUARANTINED as QUARANTINED
from remem.hooks.cases import fetch as fetch
from remem.hooks.cases import of_item as of_item
from remem.hooks.cases import of_operation as of_operation
from remem.hooks.cases import value as value

if TYPE_CHECKING:
    from remem.hooks.cases import Case as Case
    from remem.hooks.cases import Evidence as Evidence


def words_of(case: Case) -> str:
    """The words that are decided on: the claim, else those of the target."""
    obj = case.obj or case.target
    return "(gone)" if obj is None else obj.text


def why(case: Case) -> str:
    """What it is and why it waits, in a few words."""
    if case.op is not None:
        again = f", attempt {case.op.attempt}" if case.op.attempt > 1 else ""
        codes = f" ({', '.join(case.codes)})" if case.codes else ""
        return f"{case.op.action}{again}{codes}" + (", stale" if case.obstacle else "")
    return case.kind + (f" ({', '.join(case.codes)})" if case.codes else "")


def by(case: Case) -> str:
    """Who produced it."""
    return ", ".join(name or "unknown" for name in case.producers)


def kind_of(case: Case) -> str:
    """Kind of the words that are decided on."""
    return "" if case.obj is None else describe.kind_of(case.obj)


def who(one: Evidence) -> str:
    """Speaker, origin and source of evidence on one line."""
    if one.obj is None:
        return ""
    words = [one.obj.speaker or one.obj.role, f"origin {one.obj.origin}"]
    words.append(describe.source_line(one.obj.source))
    return ", ".join(word for word in words if word)

"""Refusals in a loop: bounded rows, and no refusal that is not told of in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.objects import audit, principals, refusals
from remem.objects.admit import admit
from remem.objects.errors import Refused
from remem.objects.fsck import verify
from remem.objects.kv import Txn
from remem.objects.model import Incoming, Scope
from remem.objects.refusals import MOST, WINDOW
from remem.objects.scope import Actor, Grant, maintenance_grant, owner_grant
from remem.objects.store import Store
from remem.objects.tx import Tx

SCOPE = Scope("local", "default", "home", "none", "main")
OWNER = Actor(owner_grant(SCOPE), "cli", SCOPE)
T0 = 1_800_000_000_000_000


def agent(name: str = "mcp", surface: str = "mcp") -> Actor:
    return Actor(Grant(name, "local", "default", ("home",)), surface, SCOPE)


class Chain:
    """A store whose clock stands where a test puts it."""

    def __init__(self, root: Path) -> None:
        self.store = Store.create(str(root))
        self.now = T0

    def change(self, actor: Actor, act: Callable[[Tx], object]) -> None:
        def run(txn: Txn) -> None:
            tx = Tx(txn, actor, self.now)
            act(tx)
            tx.finish()

        self.now += 1000
        self.store.env().write(run)

    def refuse(self, times: int, code: str = "not_found", actor: Actor | None = None) -> None:
        for _ in range(times):
            self.change(actor or agent(), lambda tx: tx.refuse("show", code, 0, None))

    def say(self, text: str) -> None:
        self.change(OWNER, lambda tx: admit(tx, Incoming(text=text)))

    @property
    def rows(self) -> list[audit.Row]:
        with self.store.read(maintenance_grant()) as reader:
            return [row for _, _, row in reader.audit_rows()]

    @property
    def unsaid(self) -> int:
        with self.store.read(maintenance_grant()) as reader:
            return sum(one.unsaid for one in refusals.unsaid(reader.txn))

    @property
    def told(self) -> int:
        """Refusals that the chain tells of."""
        return sum(
            int(row.outcome.rpartition("-")[2]) if row.action == "refusals" else 1
            for row in self.rows
            if row.outcome != "done"
        )

    def holds(self) -> bool:
        return verify(self.store).ok


@pytest.fixture
def chain(tmp_path: Path) -> Chain:
    return Chain(tmp_path / "store")


def test_up_to_a_bound_each_has_its_row(chain: Chain) -> None:
    chain.refuse(MOST)
    assert [row.outcome for row in chain.rows] == ["not_found"] * MOST
    assert chain.unsaid == 0 and chain.holds()


def test_beyond_it_they_are_counted_and_the_next_change_tells_it(chain: Chain) -> None:
    chain.refuse(MOST + 37)
    assert len(chain.rows) == MOST and chain.unsaid == 37
    chain.say("something else")
    rows = chain.rows[MOST:]
    assert [(row.action, row.outcome) for row in rows] == [
        ("refusals", "not_found-37"),
        ("create", "done"),
    ]
    counted = rows[0]
    assert (counted.principal, counted.surface, counted.part) == ("mcp", "mcp", 0)
    assert counted.resource is None and counted.digest is None and counted.entry == 0
    assert (rows[1].principal, rows[1].surface) == ("owner", "cli")
    assert chain.unsaid == 0 and chain.told == MOST + 37 and chain.holds()
    chain.say("and more")
    assert chain.rows[-1].action == "create" and len(chain.rows) == MOST + 3, "once only"


def test_the_bound_holds_on_after_a_count_was_told(chain: Chain) -> None:
    chain.refuse(MOST + 1)
    chain.say("one")
    chain.refuse(5)
    assert len(chain.rows) == MOST + 2 and chain.unsaid == 5
    chain.say("two")
    assert chain.rows[-2].outcome == "not_found-5"


def test_a_new_window_begins_with_rows_again(chain: Chain) -> None:
    chain.refuse(MOST + 9)
    chain.now += WINDOW
    chain.refuse(1)
    assert [row.outcome for row in chain.rows[MOST:]] == ["not_found-9", "not_found"]
    chain.refuse(MOST - 1)
    assert chain.unsaid == 0
    chain.refuse(1)
    assert chain.unsaid == 1 and chain.told == 2 * MOST + 9
    chain.now += WINDOW
    chain.say("later")
    with chain.store.read(maintenance_grant()) as reader:
        assert reader.txn.get("meta", refusals.ROW) is None, "nothing is left of it"
    assert chain.told == 2 * MOST + 10 and chain.holds()


def test_two_reasons_in_turn_are_bounded_as_well(chain: Chain) -> None:
    for _ in range(MOST + 50):
        chain.refuse(1, "not_found")
        chain.refuse(1, "scope_refused")
    assert len(chain.rows) == 2 * MOST and chain.unsaid == 100
    chain.refuse(1, "no_such_tool")
    assert [row.outcome for row in chain.rows[2 * MOST :]] == [
        "not_found-50",
        "scope_refused-50",
        "no_such_tool",
    ]


def test_each_principal_has_its_own_bound_and_the_owner_none(chain: Chain) -> None:
    chain.refuse(MOST + 1, actor=agent("one"))
    chain.refuse(MOST, actor=agent("two"))
    assert sum(row.principal == "two" for row in chain.rows) == MOST
    chain.refuse(MOST + 20, "held", OWNER)
    assert sum(row.outcome == "held" for row in chain.rows) == MOST + 20
    assert chain.told == 3 * MOST + 21 and chain.unsaid == 0


def test_a_refusal_that_undoes_a_change_is_bounded_too(tmp_path: Path) -> None:
    """Through `Store.write`: what an agent may not, again and again, by the real clock."""
    store = Store.create(str(tmp_path / "store"))
    store.write(OWNER, lambda tx: admit(tx, Incoming(text="the owner's")))

    def forbidden(tx: Tx) -> None:
        raise Refused("no").audited("revise", "not_owner", 0, None)

    for _ in range(MOST + 12):
        with pytest.raises(Refused):
            store.write(agent(), forbidden)
        principals.refuse(store, agent().grant, "mcp", "show", "not_found")
    with store.read(maintenance_grant()) as reader:
        rows = [row for _, _, row in reader.audit_rows() if row.principal == "mcp"]
        assert len(rows) == 2 * MOST
        assert {(c.code, c.unsaid) for c in refusals.unsaid(reader.txn)} == {
            ("not_owner", 12),
            ("not_found", 12),
        }
    store.close()
    again = Store(str(tmp_path / "store"))  # what is counted outlives the process
    again.write(OWNER, lambda tx: admit(tx, Incoming(text="more")))
    with again.read(maintenance_grant()) as reader:
        outcomes = [row.outcome for _, _, row in reader.audit_rows()]
    assert outcomes.count("not_owner-12") == outcomes.count("not_found-12") == 1
    assert verify(again).ok


steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["one", "two"]), st.sampled_from(["a", "b"]), st.integers(1, 9)),
        st.just("change"),
        st.just("hour"),
    ),
    max_size=8,
)


@given(steps)
def test_no_refusal_is_lost_and_the_rows_are_bounded(
    tmp_path_factory: pytest.TempPathFactory, found: list[tuple[str, str, int] | str]
) -> None:
    chain = Chain(tmp_path_factory.mktemp("chain") / "store")
    caused: Counter[tuple[str, str]] = Counter()
    others = hours = 0
    most = 5
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refusals, "MOST", most)
        for step in found:
            if step == "change":
                others += 1
                chain.say(f"number {others}")
            elif step == "hour":
                hours += 1
                chain.now += WINDOW
            elif isinstance(step, tuple):
                who, code, times = step
                chain.refuse(times, code, agent(who))
                caused[(who, code)] += times
    assert chain.told + chain.unsaid == caused.total()
    single = Counter((r.principal, r.outcome) for r in chain.rows if r.action == "show")
    for key, number in single.items():
        assert number <= min(caused[key], most * (hours + 1))
    chain.say("the last")
    assert chain.told == caused.total() and chain.unsaid == 0


def test_the_struct_says_what_its_row_tells() -> None:
    one = refusals.Counted("mcp", "not_found", "mcp", T0, MOST, 12)
    assert one.outcome == "not_found-12"
    assert msgspec.structs.replace(one, unsaid=0).outcome == "not_found-0"

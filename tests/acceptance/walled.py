"""Stores for the tests of withholding and of the scope wall, made with the library."""

from __future__ import annotations

from pathlib import Path

from remem.objects import encode, forget, memories, refs
from remem.objects.admit import admit
from remem.objects.memories import STATED
from remem.objects.model import Deriver, Incoming, Memory, Observation, Scope
from remem.objects.reader import Part
from remem.objects.scope import Actor, maintenance_grant
from remem.objects.store import Store
from remem.objects.tx import Tx
from remem.objects.views import WITHHELD

HELD = sorted(WITHHELD - {"erased"})
HOME = Scope("local", "default", "home", "none", "main")
CONTROL = "zzcontrol"


def marker(status: str, kind: str = "evidence") -> str:
    """A word that stands in one object only."""
    return f"zz{status.replace('_', '')}{kind}"


def markers(status: str) -> list[str]:
    """The words of what has a status."""
    return [marker(status, kind) for kind in ("evidence", "cited", "claim", "object")]


def owner(scope: Scope = HOME) -> Actor:
    """The owner at work in a scope."""
    return Actor(maintenance_grant(), "cli", scope)


def evidence(text: str, scope: Scope = HOME) -> Observation:
    """An observation that is not stored yet."""
    return Observation(
        encode.ZERO_SALT, scope, None, text, "user", "", "owner", None, None, None, None, "", {}
    )


def claim(text: str, value: str, cites: list[bytes], scope: Scope = HOME) -> Memory:
    """A memory about the walrus that is not stored yet."""
    triple = ("walrus", f"count of {value}", value)
    return Memory(
        encode.ZERO_SALT, scope, "fact", text, triple, cites, None, Deriver(STATED), 1000,
        None, None, None, [], "", [], {},
    )  # fmt: skip


def place(tx: Tx, obj: Observation, status: str) -> tuple[Part, bytes]:
    """Store an observation as a ref of a status."""
    part = tx.part(obj.scope)
    ref = tx.put_object(part, obj)
    tx.create(part, ref, kind=refs.OBSERVATION, lane=tx.lane(part, obj.scope), status=status)
    return part, ref


def withheld(path: Path) -> tuple[Store, dict[str, str]]:
    """A store with evidence and a claim of each withheld status, beside some that may be seen.

    Returns:
        The store, and ids: ``control``, ``total`` (a claim that cites each withheld observation
        too) and, for each status, ``STATUS`` and ``STATUS claim``.
    """
    store = Store.create(str(path))
    ids: dict[str, str] = {}

    def fill(tx: Tx) -> None:
        part, control = place(tx, evidence(f"The walrus count was {CONTROL} by noon."), "verified")
        ids["control"] = control.hex()
        cited = [control]
        for status in [*HELD, "erased"]:
            began = "verified" if status == "erased" else status
            text = f"The walrus count was {marker(status)} by noon."
            _, told = place(tx, evidence(text), began)
            again = f"The walrus count was {marker(status, 'cited')} by noon."
            cited.append(place(tx, evidence(again), began)[1])
            ids[f"{status} cited"] = cited[-1].hex()
            said = claim(
                f"walrus count of {marker(status, 'claim')}", marker(status, "object"), [control]
            )
            held = memories.create(tx, part, said, status=began, valid_from=None)
            assert held is not None
            ids[status], ids[f"{status} claim"] = told.hex(), held.hex()
        said = claim(f"the walrus total is {CONTROL}total", f"{CONTROL}object", cited)
        total = memories.create(tx, part, said, status="verified", valid_from=None)
        assert total is not None
        ids["total"] = total.hex()

    def bury(tx: Tx) -> None:
        part = tx.part(HOME)
        gone = [(part, bytes.fromhex(ids[name])) for name in ids if name.startswith("erased")]
        forget.forget_many(tx, gone)

    store.write(owner(), fill)
    store.write(owner(), bury)
    return store, ids


# -- the wall -------------------------------------------------------------------------------------

MINE = Scope("local", "default", "mine", "bot", "s1")
ELSEWHERE = {
    "tenant": Scope("others", "default", "mine", "bot", "s1"),
    "profile": Scope("local", "others", "mine", "bot", "s1"),
    "collection": Scope("local", "default", "theirs", "bot", "s1"),
    "agent": Scope("local", "default", "mine", "someone", "s1"),
    "session": Scope("local", "default", "mine", "bot", "s2"),
}
OWN = "zzown"


def foreign(where: str) -> list[str]:
    """Words that stand in another scope only."""
    return [f"zz{where}evidence", f"zz{where}fact"]


def divided(path: Path) -> tuple[Store, dict[str, str]]:
    """A store with a fact and evidence in one's own scope and in one beyond each of its parts.

    Returns:
        The store and the ids of the evidence: ``own`` and the keys of ELSEWHERE.
    """
    store = Store.create(str(path))
    ids: dict[str, str] = {}

    def fill(tx: Tx, where: str, words: list[str], scope: Scope) -> None:
        admitted = admit(tx, Incoming(text=f"The walrus count was {words[0]} by noon."))
        ids[where] = admitted.ref.hex()
        said = claim(f"walrus count of {words[1]}", words[1], [admitted.ref], scope)
        part = tx.part(scope)
        found = memories.create(tx, part, said, status="verified", valid_from=None)
        assert found is not None
        ids[f"{where} fact"] = found.hex()

    store.write(owner(MINE), lambda tx: fill(tx, "own", [OWN, f"{OWN}fact"], MINE))
    for where, scope in ELSEWHERE.items():
        store.write(
            owner(scope),
            lambda tx, w=where, s=scope: fill(tx, w, foreign(w), s),  # type: ignore[misc]
        )
    return store, ids

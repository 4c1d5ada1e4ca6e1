"""Principals: tokens, patterns, lineage, revoking, and what a grant lets a principal write."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.objects import correct, forget, fsck, pins, principals, refs, review, statements
from remem.objects.admit import Admitted, admit
from remem.objects.audit import Row
from remem.objects.errors import (
    NotFound,
    Refused,
    RememError,
    ScopeRefused,
    UsageError,
)
from remem.objects.model import Incoming, Observation, Scope
from remem.objects.pack_import import import_pack
from remem.objects.patterns import Pattern, capabilities, parse
from remem.objects.principals import Principal, bind, descends
from remem.objects.reader import Found
from remem.objects.scope import Actor, Grant, maintenance_grant, owner_grant, told
from remem.objects.store import Store
from remem.objects.tx import Tx

HOME = Scope("local", "default", "home", "none", "main")
HERE = Pattern("local", "default", "home")
OWNER = Actor(owner_grant(HOME), "cli", HOME)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(str(tmp_path / "s"))


def make(
    store: Store,
    name: str,
    can: str = "read,write",
    scope: Pattern = HERE,
    by: Actor = OWNER,
) -> tuple[Principal, str]:
    return store.write(by, lambda tx: principals.add(tx, name, scope, [can]))


def actor(store: Store, token: str) -> Actor:
    return Actor(bind(store, token=token), "mcp", HOME)


def rows(store: Store) -> list[Row]:
    with store.read(maintenance_grant()) as reader:
        return [row for _, _, row in reader.audit_rows()]


def add(store: Store, who: Actor, text: str, **fields: object) -> Admitted:
    return store.write(who, lambda tx: admit(tx, Incoming(text=text, **fields)))  # type: ignore[arg-type]


def found(store: Store, ref: bytes) -> Found:
    with store.read(maintenance_grant()) as reader:
        return reader.find(ref.hex())


def sound(store: Store) -> None:
    report = fsck.verify(store)
    assert not report.problems and report.audit.first_bad is None, report


# -- tokens ---------------------------------------------------------------------------------------


def test_a_token_makes_its_principal_and_nothing_else_does(store: Store) -> None:
    made, token = make(store, "bot", "write,read")
    assert made.can == ["read", "write"] and token.startswith("remem_") and len(token) == 49
    grant = bind(store, token=token)
    assert (grant.principal, grant.reads, grant.writes, grant.owner) == ("bot", True, True, False)
    assert bind(store, "bot", f"  {token}\n") == grant
    assert bind(store, "bot", by_owner=True) == grant
    other = make(store, "other")[1]
    wrong = [
        (None, "remem_" + "A" * 43),
        (None, token[:-1]),
        (None, token.upper()),
        (None, ""),
        ("other", token),
        ("owner", token),
        ("bot", other),
        ("bot", None),
        ("nobody", None),
    ]
    before = len(rows(store))
    for name, given_token in wrong:
        with pytest.raises(ScopeRefused) as error:
            bind(store, name, given_token)
        assert error.value.exit_code == 3
        assert not given_token or given_token not in str(error.value) + error.value.hint
    refused = rows(store)[before:]
    assert [row.action for row in refused] == ["bind"] * len(wrong)
    assert {row.principal for row in refused} == {"unknown"}
    assert bind(store).owner and bind(store, "owner").owner
    sound(store)


def test_the_store_keeps_a_digest_of_a_token_only(store: Store) -> None:
    token = make(store, "bot")[1]
    bind(store, token=token)
    for name in ("x", token):
        with pytest.raises(RememError) as error:
            bind(store, name)
        assert token not in str(error.value)
    with pytest.raises(NotFound) as gone:
        store.write(OWNER, lambda tx: principals.revoke(tx, token))
    assert token not in str(gone.value) and "(a token)" in str(gone.value)
    store.close()
    for path in Path(store.root).rglob("*"):
        if path.is_file():
            assert token.encode() not in path.read_bytes(), path


def test_a_new_token_ends_the_old_one(store: Store) -> None:
    token = make(store, "bot")[1]
    _, later = store.write(OWNER, lambda tx: principals.renew(tx, "bot"))
    assert later != token and bind(store, token=later).principal == "bot"
    with pytest.raises(ScopeRefused):
        bind(store, token=token)
    sound(store)


def test_a_read_only_store_refuses_without_a_row(store: Store) -> None:
    before = len(rows(store))
    with pytest.raises(ScopeRefused):
        bind(Store(store.root, readonly=True), token="remem_none")
    assert len(rows(store)) == before


# -- names and patterns ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["owner", "deriver", "consolidation", "unknown", "remem_abc", "", " ", "a\nb"]
)
def test_names_that_no_principal_may_have(store: Store, name: str) -> None:
    with pytest.raises((Refused, UsageError)):
        make(store, name)
    assert make(store, "fine")[0].number == 1


def test_a_name_is_never_given_again(store: Store) -> None:
    make(store, "bot")
    store.write(OWNER, lambda tx: principals.revoke(tx, "bot"))
    for change in (
        lambda tx: principals.add(tx, "bot", HERE, ["read"]),
        lambda tx: principals.renew(tx, "bot"),
        lambda tx: principals.revoke(tx, "bot"),
    ):
        with pytest.raises(Refused):
            store.write(OWNER, change)


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=9)
PARTS = st.none() | NAMES


@given(NAMES, NAMES, PARTS, PARTS, PARTS)
def test_a_pattern_reads_back_as_it_was_written(
    tenant: str, profile: str, collection: str | None, agent: str | None, session: str | None
) -> None:
    from unicodedata import normalize

    clean = [None if p is None else normalize("NFC", p) for p in (collection, agent, session)]
    pattern = Pattern(normalize("NFC", tenant), normalize("NFC", profile), *clean)
    assert parse(str(pattern)) == pattern
    assert pattern.covers(pattern)
    wide = Pattern(pattern.tenant, pattern.profile)
    assert wide.covers(pattern) and (pattern == wide or not pattern.covers(wide))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a/b/c", ("a", "b", "c", None, None)),
        ("a/b/*", ("a", "b", None, None, None)),
        ("a/b/c/bot", ("a", "b", "c", "bot", None)),
        ("a/b/github.com%2Fann%2Fnotes/*/s", ("a", "b", "github.com/ann/notes", None, "s")),
        ("a/b/%2A%25", ("a", "b", "*%", None, None)),
    ],
)
def test_patterns(text: str, parts: tuple[str | None, ...]) -> None:
    assert msgspec.structs.astuple(parse(text)) == parts


@pytest.mark.parametrize(
    "text", ["", "a", "a/b", "*/b/c", "a/*/c", "a/b/c*", "a/b//c", "a/b/c/d/e/f"]
)
def test_what_is_no_pattern(text: str) -> None:
    with pytest.raises(UsageError):
        parse(text)


def test_capabilities_are_a_closed_set() -> None:
    assert capabilities(["review,read", "write", "read"]) == ["read", "write", "review"]
    for words in ([], [""], ["own"], ["read,everything"]):
        with pytest.raises(UsageError):
            capabilities(words)


# -- lineage --------------------------------------------------------------------------------------


def test_a_principal_gives_no_more_than_it_has(store: Store) -> None:
    scope = Pattern("local", "default", "home", "bot")
    token = make(store, "bot", "read,write", scope)[1]
    bot = actor(store, token)
    for wanted, can in (
        (scope, "review"),
        (scope, "read,propose"),
        (HERE, "read"),
        (Pattern("local", "default", None, "bot"), "read"),
        (Pattern("local", "default", "other", "bot"), "read"),
        (Pattern("others", "default", "home", "bot"), "read"),
    ):
        with pytest.raises(ScopeRefused):
            make(store, "kid", can, wanted, by=bot)
    assert rows(store)[-1].outcome == "beyond_grant"
    kid, kids = make(store, "kid", "read", Pattern("local", "default", "home", "bot", "s"), by=bot)
    assert kid.parent == 1 and bind(store, token=kids).session == "s"


def test_descent_and_the_end_of_a_line(store: Store) -> None:
    bot = actor(store, make(store, "bot")[1])
    kid = actor(store, make(store, "kid", by=bot)[1])
    grand = make(store, "grandkid", "read", by=kid)[1]
    other = actor(store, make(store, "other")[1])
    with store.read(maintenance_grant()) as reader:
        line = [("kid", "bot"), ("grandkid", "bot"), ("grandkid", "kid"), ("bot", "owner")]
        assert all(descends(reader, child, above) for child, above in line)
        assert not any(descends(reader, above, child) for child, above in line)
        assert descends(reader, "bot", "bot") and descends(reader, "stranger", "stranger")
        for child, above in (("kid", "other"), ("stranger", "bot"), ("kid", "stranger")):
            assert not descends(reader, child, above)
        assert not descends(reader, "stranger", "owner")
    for who in (other, kid):
        with pytest.raises(NotFound):
            store.write(who, lambda tx: principals.revoke(tx, "bot"))
    ended = store.write(bot, lambda tx: principals.revoke(tx, "kid"))
    assert [one.name for one in ended] == ["kid", "grandkid"]
    with pytest.raises(ScopeRefused):
        bind(store, token=grand)
    assert bind(store, token=make(store, "new", by=bot)[1]).principal == "new"
    sound(store)


def test_who_is_revoked_can_do_nothing_more_in_a_process_that_runs(store: Store) -> None:
    bot = actor(store, make(store, "bot")[1])
    add(store, bot, "before")
    store.write(OWNER, lambda tx: principals.revoke(tx, "bot"))
    with pytest.raises(ScopeRefused, match="was revoked"), store.read(bot.grant):
        pass
    with pytest.raises(ScopeRefused, match="was revoked"):
        add(store, bot, "after")


def test_others_are_not_listed(store: Store) -> None:
    bot = actor(store, make(store, "bot")[1])
    make(store, "kid", by=bot)
    make(store, "other")
    with store.read(bot.grant) as reader:
        assert [one.name for one in principals.all_of(reader)] == ["bot", "kid"]
    with store.read(maintenance_grant()) as reader:
        assert [one.name for one in principals.all_of(reader)] == ["bot", "kid", "other"]


# -- the audit chain ------------------------------------------------------------------------------


def test_each_change_is_a_row_and_a_record_behind_its_back_is_found(store: Store) -> None:
    make(store, "bot", scope=Pattern("local", "default", "home", "bot"))
    store.write(OWNER, lambda tx: principals.renew(tx, "bot"))
    make(store, "other")
    store.write(OWNER, lambda tx: principals.revoke(tx, "other"))
    told_of = [row.outcome for row in rows(store) if row.action == "principal"]
    assert told_of == ["add-1", "token-1", "add-2", "revoke-2"]
    sound(store)

    def widen(tx: Tx) -> None:
        key = b"n" + (1).to_bytes(4, "big")
        one = principals.decode(bytes(tx.txn.get("principals", key) or b""))
        wide = msgspec.structs.replace(one, scope=HERE)
        tx.txn.put("principals", key, msgspec.msgpack.encode(wide))

    store.write(OWNER, widen)
    problems = fsck.verify(store).problems
    assert [p.where for p in problems] == ["principals 1"]
    assert "audit chain" in problems[0].what


@pytest.mark.parametrize("prefix", [b"n", b"k", b"t"])
def test_a_row_of_the_table_that_is_missing_is_found(store: Store, prefix: bytes) -> None:
    make(store, "bot")
    sound(store)

    def cut(tx: Tx) -> None:
        assert tx.txn.delete_prefix("principals", prefix) == 1

    store.write(OWNER, cut)
    assert any(p.where.startswith("principals") for p in fsck.verify(store).problems)


# -- what it may write ----------------------------------------------------------------------------


def test_its_word_is_never_the_owners_nor_verified(store: Store) -> None:
    bot = actor(store, make(store, "bot")[1])
    for origin in ("owner", "agent", "tool", "untrusted"):
        made = add(store, bot, f"words of {origin}", origin=origin)
        at = found(store, made.ref)
        assert refs.STATUSES[at.state.status] != "verified"
        assert made.receipt.status == refs.STATUSES[at.state.status]
        with store.read(maintenance_grant()) as reader:
            obj = reader.object(at.part, made.id)
            entry = reader.entry(at.part, at.state.first)
        assert obj.origin == ("agent" if origin == "owner" else origin)  # type: ignore[union-attr]
        assert (entry.principal, entry.surface) == ("bot", "mcp")
    assert bot.grant.word("owner") == "agent" and OWNER.grant.word("owner") == "owner"


def test_it_changes_what_it_wrote_and_nothing_of_others(store: Store) -> None:
    bot = actor(store, make(store, "bot")[1])
    kid = actor(store, make(store, "kid", by=bot)[1])
    other = actor(store, make(store, "other")[1])
    judge = actor(store, make(store, "judge", "read,write,review")[1])
    own = add(store, bot, "the bot has a plan").ref
    its = add(store, kid, "the kid has a plan").ref
    owners = add(store, OWNER, "the owner has a plan").ref

    def revise(who: Actor, ref: bytes, text: str) -> None:
        store.write(who, lambda tx: correct.revise(tx, found(store, ref), text))

    revise(bot, own, "the bot has a better plan")
    revise(bot, its, "the kid has a better plan")
    for who, ref in ((bot, owners), (kid, own), (kid, owners), (other, own)):
        before = found(store, ref).state
        for change in (
            lambda tx, r=ref: correct.revise(tx, found(store, r), "poison"),
            lambda tx, r=ref: correct.close(tx, found(store, r), tx.now),
            lambda tx, r=ref: correct.supersede(
                tx, found(store, r), admit(tx, Incoming(text="poison")).ref, tx.now
            ),
            lambda tx, r=ref: forget.forget_many(tx, [(found(store, r).part, r)]),
        ):
            with pytest.raises(ScopeRefused):
                store.write(who, change)
        assert found(store, ref).state == before
    outcomes = {row.outcome for row in rows(store) if row.principal in ("bot", "kid", "other")}
    assert outcomes == {"add-2", "done", "not_author", "not_owner"}
    revise(judge, owners, "who reviews may")
    sound(store)


def test_a_reviewers_words_for_the_owners_are_its_own(store: Store) -> None:
    judge = actor(store, make(store, "judge", "read,write,review")[1])
    note = add(store, OWNER, "deploys need two reviewers").ref
    fact = store.write(
        OWNER,
        lambda tx: statements.state(
            tx, HOME, statements.Fact(triple=("port", "is", "8443"), text="port is 8443")
        ),
    ).ref
    for ref, text in ((note, "deploys need no reviewers"), (fact, "port is 6666")):
        store.write(judge, lambda tx, r=ref, t=text: correct.revise(tx, found(store, r), t))
        assert refs.STATUSES[found(store, ref).state.status] == "provisional"
    with store.read(maintenance_grant()) as reader:
        part = reader.parts[0]
        said = [
            obj
            for ref, state in reader.states(part)
            if state.type == refs.OBSERVATION
            and isinstance(obj := reader.object(part, state.head or ref), Observation)
        ]
        assert [obj.origin for obj in said] == ["agent", "agent"]
    store.write(judge, lambda tx: correct.rollback(tx, found(store, note), None))
    assert refs.STATUSES[found(store, note).state.status] == "provisional"
    store.write(OWNER, lambda tx: correct.revise(tx, found(store, note), "deploys need three"))
    sound(store)


def test_nobody_but_the_owner_changes_what_is_pinned(store: Store) -> None:
    bot = actor(store, make(store, "bot")[1])
    judge = actor(store, make(store, "judge", "read,write,review")[1])
    ref = add(store, bot, "use tabs").ref
    store.write(bot, lambda tx: correct.revise(tx, found(store, ref), "use tabs or spaces"))
    store.write(OWNER, lambda tx: pins.pin(tx, found(store, ref)))
    changes = (
        lambda tx: correct.revise(tx, found(store, ref), "run this script"),
        lambda tx: correct.rollback(tx, found(store, ref), None),
        lambda tx: correct.close(tx, found(store, ref), tx.now),
        lambda tx: correct.supersede(
            tx, found(store, ref), admit(tx, Incoming(text="run it")).ref, tx.now
        ),
        lambda tx: tx.record(found(store, ref).part, "unpin", ref, found(store, ref).state),
    )
    before = found(store, ref).state
    for who in (bot, judge):
        for change in changes:
            with pytest.raises(ScopeRefused, match=r"may not (change what the owner|unpin)"):
                store.write(who, change)
    assert found(store, ref).state == before
    store.write(judge, lambda tx: review.reject(tx, found(store, ref).part, ref))
    assert refs.STATUSES[found(store, ref).state.status] == "rejected"
    store.write(OWNER, lambda tx: review.release(tx, found(store, ref).part, ref))
    store.write(OWNER, lambda tx: pins.unpin(tx, found(store, ref)))
    store.write(bot, lambda tx: correct.revise(tx, found(store, ref), "use spaces"))
    sound(store)


@pytest.mark.parametrize("can", ["read,write", "read,write,review"])
def test_a_new_text_of_what_was_approved_is_not_approved(store: Store, can: str) -> None:
    bot = actor(store, make(store, "bot", can)[1])
    ref = add(store, bot, "a modest proposal").ref

    def approve() -> None:
        at = found(store, ref)
        store.write(
            OWNER, lambda tx: tx.record(at.part, "approve", ref, at.state, status="verified")
        )

    approve()
    store.write(bot, lambda tx: correct.revise(tx, found(store, ref), "something else"))
    assert refs.STATUSES[found(store, ref).state.status] == "provisional"
    approve()
    store.write(OWNER, lambda tx: correct.revise(tx, found(store, ref), "as the owner has it"))
    assert refs.STATUSES[found(store, ref).state.status] == "verified"


def test_nobody_releases_or_approves_by_themselves(store: Store) -> None:
    bot = actor(store, make(store, "bot")[1])
    ref = add(store, bot, "wait for me").ref
    for op, status in (("approve", "verified"), ("release", "verified")):
        at = found(store, ref)
        with pytest.raises(ScopeRefused):
            store.write(
                bot,
                lambda tx, a=at, o=op, s=status: tx.record(a.part, o, ref, a.state, status=s),  # type: ignore[misc]
            )
    at = found(store, ref)
    store.write(
        OWNER, lambda tx: tx.record(at.part, "quarantine", ref, at.state, status="quarantined")
    )
    at = found(store, ref)
    with pytest.raises(ScopeRefused):
        store.write(
            bot, lambda tx: tx.record(at.part, "release", ref, at.state, status="provisional")
        )


def test_its_fact_does_not_take_the_place_of_the_owners(store: Store) -> None:
    bot = actor(store, make(store, "bot")[1])

    def state(who: Actor, value: str, subject: str = "port") -> bytes:
        text = f"the {subject} is {value}"
        fact = statements.Fact(triple=(subject, "is", value), text=text, single=True)
        return store.write(who, lambda tx: statements.state(tx, HOME, fact)).ref

    owners = state(OWNER, "8443")
    before = found(store, owners).state
    with pytest.raises(ScopeRefused, match="may not change what others wrote"):
        state(bot, "6666")
    assert found(store, owners).state == before
    its = state(bot, "6666", "host")
    assert state(bot, "7777", "host") != its
    assert found(store, its).state.replaced_by is not None, "its own it may replace"
    state(OWNER, "8888", "host")
    before = found(store, owners).state
    state(bot, "8443")
    after = found(store, owners).state
    assert after.head != before.head, "to what others wrote it may add evidence"
    assert msgspec.structs.replace(after, head=before.head, last=0, changed=0) == (
        msgspec.structs.replace(before, last=0, changed=0)
    )
    sound(store)


def test_capabilities_open_what_they_say(store: Store) -> None:
    ref = add(store, OWNER, "there").ref
    reader = actor(store, make(store, "reader", "read")[1])
    writer = actor(store, make(store, "writer", "write")[1])
    proposer = actor(store, make(store, "proposer", "read,propose")[1])
    for who in (reader, proposer):
        with pytest.raises(ScopeRefused):
            add(store, who, "more")
        with store.read(who.grant) as seen:
            assert seen.find(ref.hex()).ref == ref
    assert add(store, writer, "more").status == "new"
    with store.read(writer.grant) as seen:
        assert not seen.parts
        with pytest.raises(NotFound) as one:
            seen.find(ref.hex())
        with pytest.raises(NotFound) as other:
            seen.find("ab" * 32)
    assert str(one.value).replace(ref.hex(), "") == str(other.value).replace("ab" * 32, "")


def test_who_may_not_read_learns_nothing_by_writing(store: Store) -> None:
    gone = add(store, OWNER, "a secret that was forgotten").ref
    part = found(store, gone).part
    store.write(OWNER, lambda tx: forget.forget_many(tx, [(part, gone)]))
    add(store, OWNER, "a secret", source_id="7")
    writer = actor(store, make(store, "writer", "write")[1])
    both = actor(store, make(store, "both", "read,write")[1])
    texts = [
        {"text": "a secret that was forgotten"},
        {"text": "another", "source_id": "7"},
        {"text": "never said"},
    ]
    answers = []
    for text in texts:
        before = add(store, both, **text)  # type: ignore[arg-type]
        answers.append(told(both.grant, before).status)
        after = told(writer.grant, add(store, writer, **text))  # type: ignore[arg-type]
        assert (after.status, after.receipt.status, after.receipt.codes) == (
            "new",
            "provisional",
            [],
        )
    assert answers == ["blocked", "known", "new"]


# -- packs ----------------------------------------------------------------------------------------


def test_a_principal_takes_no_pack_in(store: Store) -> None:
    bot = actor(store, make(store, "bot", "read,write,review")[1])
    with pytest.raises(ScopeRefused):
        import_pack(store, bot, iter(()))  # type: ignore[arg-type]


def test_an_unbound_grant_of_a_number_that_is_not_there_opens_nothing(store: Store) -> None:
    add(store, OWNER, "there")
    forged = Grant("bot", "local", "default", None, number=7)
    with pytest.raises(ScopeRefused), store.read(forged):
        pass
    with store.read(msgspec.structs.replace(forged, number=0)) as reader:
        assert reader.parts, "positive control"


@pytest.mark.parametrize(
    "name",
    [" owner", "owner ", "Owner", "OWNER", "\uff4f\uff57ner", "Deriver", "UNKNOWN"],
)
def test_no_name_passes_for_one_of_the_stores_own(store: Store, name: str) -> None:
    with pytest.raises((Refused, UsageError)):
        make(store, name)
    assert make(store, "owner's helper")[0].name == "owner's helper"


def test_a_name_that_was_revoked_is_never_given_again(store: Store) -> None:
    make(store, "bot")
    with pytest.raises(Refused, match="is a principal already"):
        make(store, "bot")
    store.write(OWNER, lambda tx: principals.revoke(tx, "bot"))
    with pytest.raises(Refused, match="was a principal once"):
        make(store, "bot")

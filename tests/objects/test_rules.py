"""The rules: what they say and what they must not say, in tables; precision on the measuring data.

`locomo_precision` is for the bench as well: it derives claims from the chats of the measuring data
and counts them against the verdicts that a person gave (tests/data/verdicts).
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.objects import instant
from remem.objects.derive import rules
from remem.objects.derive.claim import Claim
from remem.objects.model import MEMORY_KINDS, Observation, Scope

SAID = 1_700_000_000_000_000  # 2023-11-14, microseconds UTC
SCOPE = Scope("t", "p", "c", "a", "s")
VERDICTS = Path(__file__).resolve().parent.parent / "data" / "verdicts" / "locomo-rules.jsonl"


def observation(
    text: str,
    *,
    speaker: str = "",
    role: str = "user",
    origin: str = "owner",
    kind: str = "turn",
    asserted: int | None = SAID,
) -> Observation:
    return Observation(
        bytes(16), SCOPE, None, text, role, speaker, origin, None, asserted, None, None, kind, {}
    )


def derive(text: str, speaker: str = "") -> list[Claim]:
    return rules.derive(observation(text, speaker=speaker))


def triples(text: str) -> list[tuple[str, str, str]]:
    return [(c.subject, c.predicate, c.object) for c in derive(text)]


def shown(claims: list[Claim]) -> str:
    """Write claims in one line: "lives_in Berlin; ended: works_at Acme"."""
    return "; ".join(
        ("ended: " if c.ends else "past: " if c.valid_to is not None else "")
        + ("" if c.subject == "user" else f"{c.subject} ")
        + f"{c.predicate} {c.object}"
        for c in claims
    )


def us(year: int, month: int = 1, day: int = 1) -> int:
    return instant.day_number(year, month, day) * 86_400_000_000


@pytest.mark.parametrize(
    "other",
    [
        {"role": "assistant"},
        {"role": "tool"},
        {"role": "system"},
        {"origin": "agent"},
        {"origin": "tool"},
        {"origin": "untrusted"},
        {"kind": "command"},
        {"kind": "commit"},
    ],
)
def test_only_what_the_owner_said(other: dict[str, str]) -> None:
    text = "I live in Berlin and you live in Rome."
    assert shown(rules.derive(observation(text, **other))) == ""  # type: ignore[arg-type]
    assert shown(rules.derive(observation(text))) == "lives_in Berlin"
    assert shown(rules.derive(observation(text, role=""))) == "lives_in Berlin"


def test_speaker_is_the_subject() -> None:
    assert triples("I live in Berlin.") == [("user", "lives_in", "Berlin")]
    (claim,) = derive("I live in Berlin.", "Caroline")
    assert (claim.subject, claim.text) == ("Caroline", "Caroline lives in Berlin")
    (claim,) = derive("My sister lives in Rome.", "Caroline")
    assert claim.subject == "Caroline's sister"
    # A line labelled with the speaker's own name is the speaker's.
    assert derive("Caroline: I live in Berlin", "Caroline")
    assert not derive("Caroline: I live in Berlin", "Melanie")


@pytest.mark.parametrize(
    ("text", "valid_from", "valid_to"),
    [
        ("I live in Rome.", None, None),
        ("I live in Rome since 2019.", us(2019), None),
        ("Since 2019 I live in Rome.", us(2019), None),
        ("I've lived in Rome since March 2022.", us(2022, 3), None),
        ("I moved to Rome in March 2022.", us(2022, 3), None),
        ("I moved to Rome on 2022-03-05.", us(2022, 3, 5), None),
        ("I moved to Rome on 5 March 2022.", us(2022, 3, 5), None),
        ("I moved to Rome on March 5th, 2022.", us(2022, 3, 5), None),
        ("In 2019 I moved to Rome.", us(2019), None),
        ("I moved to Rome last week.", None, None),
        ("I moved to Rome on 31 February 2022.", None, None),
        ("I lived in Rome from 2010 to 2015.", us(2010), us(2016)),
        ("I lived in Rome until May 2015.", None, us(2015, 6)),
        ("I used to live in Rome.", None, SAID),
        ("I used to live in Rome until 2015.", None, us(2016)),
        ("I left my job at Acme in 2021.", None, us(2021)),
        ("I no longer work at Acme.", None, None),
        ("The deploy host is beta-3 since 2022-03-05.", us(2022, 3, 5), None),
    ],
)
def test_dates(text: str, valid_from: int | None, valid_to: int | None) -> None:
    (claim,) = derive(text)
    assert (claim.valid_from, claim.valid_to) == (valid_from, valid_to)


def test_past_without_a_time_of_saying_is_not_left_current() -> None:
    (claim,) = rules.derive(observation("I used to live in Rome.", asserted=None))
    assert claim.ends
    assert claim.valid_to is None
    (claim,) = rules.derive(observation("I used to live in Rome.", asserted=SAID))
    assert not claim.ends
    assert claim.valid_to == SAID


@pytest.mark.parametrize(
    ("text", "single"),
    [
        ("I live in Rome.", True),
        ("My mother lives in Rome.", True),
        ("My brother lives in Rome.", False),  # there may be two of them
        ("I used to live in Rome.", False),  # what is past replaces nothing
        ("I work at Acme.", False),  # one can have two jobs
        ("I speak German.", False),
        ("I have a dog called Rex.", False),
        ("My name is Anna.", True),
        ("My favourite colour is green.", True),
        ("I'm married to Sofia.", True),
        ("The deploy host is beta-3.", True),
    ],
)
def test_one_value_at_a_time(text: str, single: bool) -> None:
    (claim,) = derive(text)
    assert claim.single is single
    assert claim.predicate in rules.SINGLE_VALUED or not single or "favourite" in claim.predicate


def test_closed_table_of_single_valued_predicates() -> None:
    assert "lives_in" in rules.SINGLE_VALUED
    assert not rules.SINGLE_VALUED & {"works_at", "speaks", "has_pet", "likes", "uses"}


def test_keys_of_look_alike_settings_differ() -> None:
    said = [
        "The budget for 2024 is 40k.",
        "The budget for 2025 is 40k.",
        "The budget of 2024 is 1.",
    ]
    assert len({(c.subject, c.predicate) for text in said for c in derive(text)}) == 3
    same = ["The staging server's port is 1000.", "the port of the staging server is 2000"]
    assert len({(c.subject, c.predicate) for text in same for c in derive(text)}) == 1
    assert triples("Deploy host is a-1.")[0][0] == triples("The deploy host is a-1.")[0][0]


def test_order_and_bound() -> None:
    text = "\n".join(f"the port of service s{n} is {n + 1000}" for n in range(200))
    found = derive(text)
    assert len(found) == rules.MAX_CLAIMS
    assert [c.object for c in found] == [str(n + 1000) for n in range(rules.MAX_CLAIMS)]
    assert len(derive("I live in Rome. I live in Rome.")) == 1


def test_long_texts_are_left_alone() -> None:
    assert derive("I live in Rome. " + "x " * 20_000)
    assert not derive("I live in Rome. " + "x " * 30_000)


@pytest.mark.parametrize(
    "piece",
    ["A", "Aa ", "my dog ", "Anna's ", '"', "```\n", "the port of the ", "a: ", "1 ", "\n> "],
)
def test_no_text_takes_long(piece: str) -> None:
    every = "I live, moved, play and use: my sister, dog, name, job, host, port, budget, called "
    start = time.perf_counter()
    derive(every + piece * (49_000 // len(piece)))
    assert time.perf_counter() - start < 20


def test_wrapped_lines_are_one_sentence() -> None:
    wrapped = "He was quite sure of it and told everybody that he had heard that\nI live in Berlin."
    assert not derive(wrapped)
    assert derive(wrapped.replace("that\nI", "that.\nI"))


def test_names_of_the_interface() -> None:
    assert rules.NAME == "rules"
    assert rules.VERSION == 1


# --- look-alike facts from a generator


class Fact(NamedTuple):
    text: str
    key: tuple[str, str]
    value: str


def look_alikes(seed: int, count: int) -> Iterator[Fact]:
    """Yield facts that differ in a name, a place, a year or a number, all keys distinct."""
    draw = random.Random(seed)
    syllables = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u")]

    def name() -> str:
        return "".join(draw.choices(syllables, k=3)).capitalize()

    def number() -> str:
        return str(draw.randrange(1000, 65_000))

    seen: set[tuple[str, str]] = set()
    while len(seen) < count:
        first, last, place, year = name(), name(), name(), draw.randrange(1950, 2060)
        who, low = f"{first} {last}", first.lower()
        fact = draw.choice(
            [
                Fact(f"{who} lives in {place}.", (who, "lives_in"), place),
                Fact(f"{who} works at {place} Labs.", (who, "works_at"), f"{place} Labs"),
                Fact(f"{who} was born in {year}.", (who, "birth_year"), str(year)),
                Fact(f"{who} was born in {place}.", (who, "born_in"), place),
                Fact(f"{who}'s birthday is May {year % 28 + 1}.", (who, "birthday"), ""),
                Fact(f"{who} is married to {name()}.", (who, "married_to"), ""),
                Fact(
                    f"The budget for {low} {year} is {year}k.",
                    (f"budget for {low} {year}", "is"),
                    "",
                ),
                Fact(f"The budget for {year} is 40k.", (f"budget for {year}", "is"), "40k"),
                Fact(f"The port of {low} is {number()}.", (f"port of {low}", "is"), ""),
                Fact(f"The {low} port is {number()}.", (f"{low} port", "is"), ""),
                Fact(f"The {low} server is {last.lower()}-1.", (f"{low} server", "is"), ""),
                Fact(
                    f"The {low} office has moved from {last} to {place}.",
                    (f"{low} office", "moved_to"),
                    place,
                ),
            ]
        )
        if fact.key not in seen:
            seen.add(fact.key)
            yield fact


def test_a_thousand_look_alikes_each_say_their_own() -> None:
    keys = set()
    for fact in look_alikes(11, 1000):
        (claim,) = derive(fact.text)
        assert (claim.subject, claim.predicate) == fact.key, fact.text
        assert claim.object == fact.value or (not fact.value and claim.object in fact.text)
        keys.add((claim.subject, claim.predicate))
    assert len(keys) == 1000


def test_a_thousand_look_alikes_in_one_text_keep_their_own() -> None:
    facts = list(look_alikes(12, rules.MAX_CLAIMS))
    found = derive("\n\n".join(fact.text for fact in facts))
    assert [(c.subject, c.predicate) for c in found] == [fact.key for fact in facts]


# --- properties

PIECES = st.sampled_from(
    [
        *(
            "I live in Berlin.",
            "My wife Sofia works at Siemens.",
            "We have two cats named A and Bo.",
        ),
        *(
            "The budget for 2024 is 40k.",
            "the deploy host is no longer alpha-9",
            "I no longer use vim.",
        ),
        *(
            "I was born on 5 May 1980 in Paris.",
            "My favourite film is 'Alien'.",
            "I love rock and soul",
        ),
        *("I've worked at Acme since 2010.", "If I lived in Rome", "She said I live in Rome."),
        *(
            "I joined a gym last week",
            "Our new service is called `zephyr`.",
            "I speak Thai and Lao.",
        ),
        *('"', "'", "`", "```\n", "> ", "\n", "\n\n", ". ", "? ", " if ", " and ", ", ", "Anna: "),
        *(
            "I",
            " live",
            " in",
            "my name is",
            "\u0130",
            "\u2019",
            "\U0001f600",
            "\x01",
            "\x02",
            "\t",
        ),
    ]
)
TEXTS = st.one_of(st.lists(PIECES, max_size=8).map("".join), st.text(max_size=200))


@given(TEXTS, st.sampled_from(["", "Anna", "\u0130x"]))
def test_claims_are_grounded(text: str, speaker: str) -> None:
    found = derive(text, speaker)
    assert found == derive(text, speaker)
    for claim in found:
        assert 0 <= claim.start < claim.end <= len(text)
        assert claim.object in text[claim.start : claim.end]
        assert claim.object == claim.object.strip()
        assert claim.subject and claim.text
        assert claim.kind in MEMORY_KINDS
        assert re.fullmatch(r"[a-z_]+", claim.predicate)
        assert 0 < claim.confidence <= 1000
    assert len({(c.subject, c.predicate, c.object, c.ends) for c in found}) == len(found)


def test_fast_where_nothing_matches() -> None:
    texts = [
        "Wow, that sounds great! How did it go with the kids? Can't wait to hear more about it.",
        "ok let me look at the traceback first, then we can decide what to do about the cache",
        "It was so much fun, they really loved the museum and all the dinosaurs over there!",
        "Please run the tests again and tell me which of them fail on the second machine.",
    ]
    turns = [observation(text) for text in texts] * 500
    assert not any(map(rules.derive, turns))
    best = min(_seconds(turns) for _ in range(3))
    # The aim is 20,000 a second on a quiet machine; a tenth of it fails on any.
    assert len(turns) / best > 4_000
    assert rules.derive(observation("I live in Berlin."))


def _seconds(turns: list[Observation]) -> float:
    start = time.perf_counter()
    for turn in turns:
        rules.derive(turn)
    return time.perf_counter() - start


# --- precision on the measuring data


class Precision(NamedTuple):
    """Claims counted against the verdicts.

    Attributes:
        right: claims that a person judged right.
        wrong: judged wrong.
        unknown: not judged: new, or said in other words than the judged ones.
        lost: judged right, and not derived any more.
    """

    right: int
    wrong: int
    unknown: int
    lost: int

    @property
    def value(self) -> float:
        """Right among the judged, 0 where none is."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 0.0


def digest(claim: Claim) -> str:
    """Name a claim without its words."""
    said = "\0".join((claim.subject, claim.predicate, claim.object, str(claim.ends)))
    return hashlib.blake2b(said.encode(), digest_size=5).hexdigest()


def locomo_claims(data: Path) -> Iterator[tuple[str, str, Claim]]:
    """Derive claims from every turn of LoCoMo; yields conversation, turn and claim."""
    for sample in json.loads((data / "locomo" / "locomo-dev.json").read_bytes()):
        for name, turns in sample["conversation"].items():
            if re.fullmatch(r"session_\d+", name):
                for turn in turns:
                    for claim in derive(turn["text"], turn["speaker"]):
                        yield sample["sample_id"], turn["dia_id"], claim


def locomo_precision(data: Path, verdicts: Path = VERDICTS) -> Precision:
    """Compute the precision of the rules on LoCoMo from the kept verdicts.

    Args:
        data: folder of the measuring data.
        verdicts: JSON lines {"conversation", "turn", "predicate", "claim", "right"}, where claim is
            the `digest` of the claim.
    """
    judged = {}
    for line in verdicts.read_text().splitlines():
        row = json.loads(line)
        judged[row["conversation"], row["turn"], row["claim"]] = bool(row["right"])
    found = {(sample, turn, digest(claim)) for sample, turn, claim in locomo_claims(data)}
    return Precision(
        right=sum(judged.get(key) is True for key in found),
        wrong=sum(judged.get(key) is False for key in found),
        unknown=len(found - judged.keys()),
        lost=sum(right for key, right in judged.items() if key not in found),
    )


def test_precision_on_chats(shared_data: Path) -> None:
    measured = locomo_precision(shared_data)
    assert measured.value >= 0.95
    assert measured.right >= 150
    assert measured.unknown <= 10  # more than that must be judged first


def test_verdicts_hold_no_words() -> None:
    rows = [json.loads(line) for line in VERDICTS.read_text().splitlines()]
    assert rows
    for row in rows:
        assert row.keys() == {"conversation", "turn", "predicate", "claim", "right"}
        assert re.fullmatch(r"conv-\d+", row["conversation"])
        assert re.fullmatch(r"D\d+:\d+", row["turn"])
        assert re.fullmatch(r"[a-z_]+", row["predicate"])
        assert re.fullmatch(r"[0-9a-f]{10}", row["claim"])
        assert isinstance(row["right"], bool)


def test_precision_counts_wrong_unknown_and_lost(shared_data: Path, tmp_path: Path) -> None:
    claims = list(locomo_claims(shared_data))
    keep = tmp_path / "verdicts.jsonl"
    rows = [
        {"conversation": c, "turn": t, "predicate": x.predicate, "claim": digest(x), "right": n > 0}
        for n, (c, t, x) in enumerate(claims[:4])
    ]
    rows.append({**rows[1], "claim": "0" * 10})
    keep.write_text("".join(json.dumps(row) + "\n" for row in rows))
    measured = locomo_precision(shared_data, keep)
    assert (measured.right, measured.wrong, measured.lost) == (3, 1, 1)
    assert measured.unknown == len({(c, t, digest(x)) for c, t, x in claims}) - 4
    assert measured.value == 0.75

"""remem-store(5) and the code: the tables, codes and bytes of the page are those of the code."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from remem.objects import audit, model, refs
from remem.objects import format as fmt
from remem.objects.derive.queue import Job
from remem.objects.keys import Sealed
from remem.objects.patterns import Pattern
from remem.objects.principals import Principal
from remem.objects.reader import Part
from remem.objects.receipts import Gate, Receipt
from remem.objects.refusals import Counted
from remem.objects.retention import Rule
from remem.objects.signing import OwnerKey, Signature
from remem.objects.tombs import Tomb
from tests.formats import build, decoder

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "man" / "man5" / "remem-store.5").read_text()
GOLDEN = json.loads(build.VECTORS.read_text())


def marked(kind: str) -> dict[str, list[list[str]]]:
    """Rows of the column lists after comments ``.\\" kind NAME``, without the heading."""
    found = {}
    for name, body in re.findall(
        rf'^\.\\" {kind} (\S+)\n\.Bl[^\n]*\n(.*?)^\.El', PAGE, re.M | re.S
    ):
        cells = [line[4:].split(" Ta ") for line in body.splitlines() if line.startswith(".It ")]
        found[name] = cells[1:]
    return found


def word(cell: str) -> str:
    """A cell without the macro before it."""
    return cell.split()[-1] if cell != '""' else ""


FIELDS = {
    "Part": Part,
    "Observation": model.Observation,
    "Memory": model.Memory,
    "Draft": model.Draft,
    "Operation": model.Operation,
    "Run": model.Run,
    "Entry": refs.AttestingEntry,
    "RefState": refs.RefState,
    "Row": audit.AttestingRow,
    "Head": audit.Head,
    "Counted": Counted,
    "Receipt": Receipt,
    "Gate": Gate,
    "Job": Job,
    "Tomb": Tomb,
    "Rule": Rule,
    "Principal": Principal,
    "Pattern": Pattern,
    "OwnerKey": OwnerKey,
    "Signature": Signature,
    "Sealed": Sealed,
}


@pytest.mark.parametrize("name", FIELDS)
def test_fields_are_those_of_the_struct(name: str) -> None:
    struct = FIELDS[name]
    tag = struct.__struct_config__.tag
    expected = (["tag"] if tag else []) + list(struct.__struct_fields__)
    listed = marked("fields")[name]
    assert [word(row[1]) for row in listed] == expected
    assert [row[0] for row in listed] == [str(number) for number in range(len(expected))]


def test_every_field_list_of_the_page_is_compared() -> None:
    assert set(marked("fields")) == set(FIELDS)


def test_tables_are_those_of_the_code() -> None:
    names = [word(row[0]) for row in marked("table")["TABLES"]]
    assert [name for name in names if name] == list(fmt.TABLES)
    assert sorted(decoder.TABLES) == sorted(fmt.TABLES)


def test_ops_are_those_of_the_code_and_do_to_flags_what_they_do() -> None:
    flags = {"HELD": refs.HELD, "PINNED": refs.PINNED, "FLAGGED": refs.FLAGGED}
    flags["CLOSED"] = refs.CLOSED
    rows = marked("codes")["OPS"]
    assert [(int(row[0]), word(row[1])) for row in rows] == list(enumerate(refs.OPS))
    begin = build.ENTRIES["create"]
    for row in rows:
        op = word(row[1])
        if op == "create":
            continue
        for before in (0, sum(flags.values())):
            state = refs.step(None, begin)
            state = msgspec.structs.replace(state, flags=before)
            after = refs.step(state, build.entry(2, op, build.REF, build.REF)).flags
            verb, _, flag = row[2].strip('"').partition(" ")
            expected = before
            if verb == "sets":
                expected |= flags[flag]
            elif verb == "clears":
                expected &= ~flags[flag]
            assert after == expected, (op, before)
    assert {word(row[1]): int(row[0]) for row in marked("codes")["FLAGS"]} == flags


def test_statuses_are_those_of_the_code() -> None:
    rows = marked("codes")["STATUSES"]
    assert [(int(row[0]), word(row[1])) for row in rows] == list(enumerate(refs.STATUSES))
    assert tuple(decoder.STATUSES) == refs.STATUSES
    assert tuple(decoder.OPS) == refs.OPS


@pytest.mark.parametrize("name", ["ROLES", "ORIGINS", "MEMORY_KINDS", "DRAFT_ACTIONS", "VERDICTS"])
def test_words_are_those_of_the_code(name: str) -> None:
    body = re.search(rf'^\.\\" words {name}\n((?:\.Ql .*\n)+)', PAGE, re.M)
    assert body is not None
    listed = re.findall(r"^\.Ql (\S+)", body[1], re.M)
    assert listed == [value for value in getattr(model, name) if value]


def test_vectors_are_the_golden_ones() -> None:
    found = re.findall(
        r'^\.\\" vector (\S+) (\S+)\n\.Bd.*\n((?:[0-9a-f]{2}(?: |\n))+)\.Ed', PAGE, re.M
    )
    groups = [GOLDEN["objects"], GOLDEN["entries"], GOLDEN["rows"], {"source": GOLDEN["source"]}]
    groups.append({"sign-create": GOLDEN["signing"]["sign-create"]})
    known = {name: record for group in groups for name, record in group.items()}
    assert len(found) == PAGE.count('.\\" vector ') == 9
    for name, what, digits in found:
        assert "".join(digits.split()) == known[name][what], (name, what)


def test_the_checkpoint_of_the_page_is_the_golden_one() -> None:
    (shown,) = re.findall(r"^(remem/audit-chain/.*?\n\n.*?\n)\.Ed", PAGE, re.M | re.S)
    assert shown.replace("\\(em", "\u2014").replace("\\-", "-") == GOLDEN["signing"]["checkpoint"]


def test_example_is_told_as_it_is() -> None:
    data = bytes.fromhex(GOLDEN["objects"]["observation-minimal"]["bytes"])
    assert data[:14] == b"observation 1\0"
    assert data[14] == 0x90 | 14
    assert data[27:29] == b"\xc4\x10"


def test_sections_that_the_code_names_exist() -> None:
    sections = {title.upper() for title in re.findall(r"^\.S[hs] (.*)$", PAGE, re.M)}
    named = set()
    for path in (ROOT / "objects").rglob("*.py"):
        for words in re.findall(r"remem-store\(5\), ([A-Z ]+)", path.read_text()):
            named |= {name.strip() for name in re.split(r" and |, ", words.replace(" and ", ", "))}
    named = {name for name in named if name}
    assert {"OBJECTS", "AUDIT", "VERIFYING"} <= named
    assert named <= sections, named - sections


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not on this machine")
def test_the_page_is_clean() -> None:
    page = ROOT / "man" / "man5" / "remem-store.5"
    done = subprocess.run(
        ["mandoc", "-T", "lint", "-W", "warning", str(page)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == ""
    assert done.returncode == 0
    broken = subprocess.run(
        ["mandoc", "-T", "lint", "-W", "warning"],
        input=PAGE.replace(".Sh NAME\n", ".Sh NAME\n.Xy\n"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert broken.returncode != 0

"""Plain text and Markdown: where a record begins and ends, and what is known of it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from remem.hooks.sources import read, read_stream
from remem.hooks.sources._record import Record
from remem.objects.model import Incoming, Rejected, Skipped


def text(raw: bytes, **options: int) -> list[Record]:
    return list(read_stream("text", io.BytesIO(raw), "notes.txt", **options))


def markdown(raw: str, **options: int) -> list[Record]:
    return list(read_stream("markdown", io.BytesIO(raw.encode()), "notes.md", **options))


def kept(records: list[Record]) -> list[Incoming]:
    assert all(isinstance(record, Incoming) for record in records), records
    return [record for record in records if isinstance(record, Incoming)]


def test_text_is_cut_at_blank_lines() -> None:
    raw = b"\xef\xbb\xbf\n\nfirst line\r\n  second\r\n \t\r\nthird\n\n\n"
    assert text(raw) == [
        Incoming(text="first line\r\n  second", kind="note", where="notes.txt:3"),
        Incoming(text="third", kind="note", where="notes.txt:6"),
    ]
    assert text(b"") == text(b"\n \n") == []


def test_a_block_that_is_not_utf8_costs_itself_only() -> None:
    records = text(b"ok\n\nline\ngr\xfc\xdfe\n\nalso ok")
    assert records[1] == Rejected("notes.txt:3", "not UTF-8: byte 0xfc at offset 7")
    assert [type(record) for record in records] == [Incoming, Rejected, Incoming]


def test_a_block_above_the_limit_costs_itself_only() -> None:
    records = text(b"a\n\n" + b"word\n" * 100 + b"\nb\n\n" + b"x" * 200, limit_b=50)
    assert [type(record) for record in records] == [Incoming, Rejected, Incoming, Rejected]
    assert records[1] == Rejected("notes.txt:3", "block is above the limit of 50 bytes")
    assert len(kept(text(b"x" * 50 + b"\n\n" + b"y" * 24 + b"\n" + b"y" * 25, limit_b=50))) == 2


def test_a_file_is_the_source_of_its_notes(tmp_path: Path) -> None:
    for fmt, name in (("text", "a.txt"), ("markdown", "a.md")):
        path = tmp_path / name
        path.write_text("hello\n")
        (record,) = kept(list(read(fmt, str(path))))
        assert (record.source_uri, record.source_id) == (f"file:{path}", "")
        assert (record.role, record.origin, record.asserted) == ("", "owner", None)
    assert kept(text(b"hello"))[0].source_uri == ""


WORDS = st.text("ab é中", min_size=1).filter(str.strip)


@given(st.lists(st.lists(WORDS, min_size=1, max_size=3), max_size=5))
def test_blocks_come_back(blocks: list[list[str]]) -> None:
    raw = "\n\n".join("\n".join(block) for block in blocks)
    assert [r.text for r in kept(text(raw.encode()))] == ["\n".join(block) for block in blocks]


DOCUMENT = """\
---
title: "Moving house"
date: 2026-03-01
tags: [boxes, van]
draft: true
---
Before any heading.

# Plan

We start *early*.

## The `van` and\tthe **boxes**

```sh
# no heading
echo "## nor this"
```

> # quoted

### Empty

## Costs
===

Setext
------
* # in a list
"""


def test_sections_have_their_headings() -> None:
    records = markdown(DOCUMENT)
    assert [(r.where, getattr(r, "why", "")) for r in records] == [
        ("notes.md:7", ""),
        ("notes.md:9", ""),
        ("notes.md:13", ""),
        ("notes.md:22", "heading without text"),
        ("notes.md:24", ""),
        ("notes.md:27", ""),
    ]
    sections = [record for record in records if isinstance(record, Incoming)]
    assert [record.meta.get("heading") for record in sections] == [
        None,
        "Plan",
        "Plan > The van and the boxes",
        "Plan > Costs",
        "Plan > Setext",
    ]
    assert "echo" in sections[2].text and "# quoted" in sections[2].text
    assert sections[1].text == "# Plan\n\nWe start *early*."
    for section in sections:
        assert section.asserted == 1_772_323_200_000_000
        assert section.meta["title"] == "Moving house" and section.meta["tags"] == "boxes, van"
        assert "draft" not in section.meta


def test_toml_front_matter() -> None:
    raw = '+++\ntitle = "T"\ndate = 2026-03-01T09:30:00+01:00\ntags = ["a", "b"]\n+++\nbody\n'
    (record,) = kept(markdown(raw))
    assert (record.text, record.where) == ("body", "notes.md:6")
    assert (record.asserted, record.offset) == (1_772_353_800_000_000, 60)
    assert (record.meta["title"], record.meta["tags"]) == ("T", "a, b")


@pytest.mark.parametrize(
    "raw",
    [
        "---\nno pair at all\n---\nbody",  # a rule and a heading
        "---\ntitle: never closed\n\nbody",
        "+++\nnot = = toml\n+++\nbody",
        " ---\ntitle: indented\n---\nbody",
    ],
)
def test_what_only_looks_like_front_matter_is_text(raw: str) -> None:
    records = markdown(raw)
    assert "title" not in kept(records)[0].meta
    assert "".join(r.text for r in kept(records)).replace("\n", "") == raw.replace("\n", "")


def test_a_date_that_cannot_be_read_stays_in_meta() -> None:
    (record,) = kept(markdown("---\ndate: some day\n---\nbody"))
    assert (record.asserted, record.meta) == (None, {"date": "some day"})


def test_a_list_of_tags_below_its_key() -> None:
    (record,) = kept(markdown("---\ntags:\n  - one\n  - 'two'\nx: 1\n---\nbody"))
    assert record.meta == {"tags": "one, two"}


def test_since_follows_the_date_of_the_file() -> None:
    records = markdown(DOCUMENT, since=1_772_323_200_000_001)
    assert {type(record) for record in records} == {Skipped} and len(records) == 6
    assert len(kept(markdown("no date", since=2**60))) == 1


def test_what_cannot_be_parsed_is_one_rejected() -> None:
    assert list(read_stream("markdown", io.BytesIO(b"# \xff"), "x.md")) == [
        Rejected("x.md", "not UTF-8: byte 0xff at offset 2")
    ]
    assert markdown("word " * 30, limit_b=100) == [
        Rejected("notes.md", "text is above the limit of 100 bytes")
    ]
    assert markdown("") == markdown("\n\n") == []


LINES = st.sampled_from(
    ["# A", "## B", "text", "", "```", "> # q", "- # l", "---", "===", "\t# code", "<!--", "a\x0bb"]
)


@given(st.lists(LINES, max_size=12), st.sampled_from(["\n", "\r\n", "\r"]))
@example(["text", "==="], "\r\n")
def test_no_line_is_lost_or_read_twice(lines: list[str], ending: str) -> None:
    """Sections put together again are the document, whatever Markdown makes of it."""
    source = ["first", *lines]  # keeps a leading rule from opening front matter
    records = markdown(ending.join(source))
    starts = [int(record.where.rpartition(":")[2]) for record in records]
    assert starts[0] == 1 and starts == sorted(set(starts))
    for record, start, end in zip(records, starts, [*starts[1:], len(source) + 1], strict=True):
        if isinstance(record, Incoming):
            assert record.text == "\n".join(source[start - 1 : end - 1]).strip("\n")

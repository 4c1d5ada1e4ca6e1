"""Unspaced scripts and code words, through the whole of recall, with vectors switched off."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from remem.index import project
from remem.index.recall import Question, Searcher
from remem.objects import instant
from remem.objects.admit import admit
from remem.objects.model import Incoming, Scope
from remem.objects.scope import Actor, Grant, owner_grant
from remem.objects.store import Store
from remem.objects.views import Lens

HOME = Scope("local", "default", "home", "none", "main")

TEXTS = {
    "zh": "我们星期二把服务器搬到了新机房",
    "zh-glued": "备份在node-qrt7上运行了一整夜",
    "ja": "来週の火曜日に会議室を予約しました",
    "ko": "다음주화요일에회의실을예약했습니다",
    "th": "เราย้ายเซิร์ฟเวอร์ไปห้องใหม่เมื่อวันอังคาร",
    "snake": "the value of max_retry_count is read at start",
    "camel": "call parseHttpHeader before the body arrives",
    "path": "the bug is in lib/net/dial.py near the end",
    "scoped": "we pinned @acme/util for the build",
    "ticket": "TICKET-0042-B blocks the release",
    "version": "upgrade to 7.31.2 broke the login",
    "shelf": "Room 7: Shelf 2 holds the adapters",
    "cpp": "the parser was rewritten in C++ last year",
    "c": "the driver is plain C with no runtime",
    "wide": "その部屋番号は１２３４です",
    "accent": "we met at the cafe\u0301 on the corner",
    "flag": "run it with --dry-run first",
    "mail": "write to ops-team@example.org about quota",
    "url": "the page is https://docs.example.org/guide/install.html",
    "rust": "std::collections::HashMap was slower",
}

FULL = {
    "zh": "我们星期二把服务器搬到了新机房",
    "zh-glued": "node-qrt7",
    "ja": "来週の火曜日に会議室を予約しました",
    "ko": "다음주화요일에회의실을예약했습니다",
    "th": "เราย้ายเซิร์ฟเวอร์ไปห้องใหม่เมื่อวันอังคาร",
    "snake": "max_retry_count",
    "camel": "parseHttpHeader",
    "path": "lib/net/dial.py",
    "scoped": "@acme/util",
    "ticket": "TICKET-0042-B",
    "version": "7.31.2",
    "shelf": "Room 7: Shelf 2",
    "cpp": "C++",
    "wide": "1234",
    "accent": "caf\u00e9",
    "flag": "--dry-run",
    "mail": "ops-team@example.org",
    "url": "https://docs.example.org/guide/install.html",
    "rust": "std::collections::HashMap",
}

PARTS = {
    "zh": "机房",
    "zh-glued": "qrt7",
    "ja": "会議",
    "ko": "회의",
    "th": "ห้อง",
    "snake": "retry",
    "camel": "http",
    "path": "dial",
    "scoped": "acme",
    "ticket": "0042",
    "version": "7.31",
    "shelf": "shelf",
    "wide": "部屋",
    "accent": "cafe",
    "mail": "quota",
    "url": "install",
    "rust": "hashmap",
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Searcher]:
    store = Store.create(str(tmp_path_factory.mktemp("words") / "store"))
    actor = Actor(Grant("owner", "local", "default", None, owner=True), "cli", HOME)
    for name, text in TEXTS.items():
        record = Incoming(text=text, source_id=name)
        store.write(actor, lambda tx, record=record: admit(tx, record))  # type: ignore[misc]
    project.project(store)
    yield Searcher(store, owner_grant(HOME))
    store.close()


def names(searcher: Searcher, query: str, limit: int = 3) -> list[str]:
    question = Question(query, Lens(instant.now()), limit=limit, mode="lexical")
    hits = searcher.ask(question).hits
    return [hit.obj.source.id for hit in hits]  # type: ignore[union-attr]


@pytest.mark.parametrize("name", sorted(FULL))
@pytest.mark.parametrize("form", ["plain", "quoted", "upper", "mixed"])
def test_full_form_is_first(found: Searcher, name: str, form: str) -> None:
    query = FULL[name]
    query = {
        "plain": query,
        "quoted": f'"{query}"',
        "upper": query.upper(),
        "mixed": f"{query} xyzzyplugh",
    }[form]
    assert names(found, query)[0] == name


@pytest.mark.parametrize("name", sorted(PARTS))
def test_part_is_among_the_first_three(found: Searcher, name: str) -> None:
    assert name in names(found, PARTS[name])


def test_an_unknown_word_alone_finds_nothing(found: Searcher) -> None:
    assert names(found, "xyzzyplugh") == []
    assert names(found, "不存在的词汇囍囍") == []

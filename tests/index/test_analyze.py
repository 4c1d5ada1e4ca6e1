"""Text analysis: what is found by which words, and that documents and queries agree."""

# ruff: noqa: RUF001 - characters that look alike are the matter here

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
import time
import unicodedata
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.index import analyze
from remem.index.analyze import (
    MAX_TERM_BYTES,
    STOP_WORDS,
    distinct_tokens,
    query_terms,
    terms,
)

# --- a ranker as small as possible ----------------------------------------------------------------

CORPUS = {
    "zh": "我们决定星期二在node-qrt7上移动服务器并且更换硬盘",
    "zh2": "我昨天买了一辆自行车,打印机坏了",
    "zh3": "服从命令的人不需要问为什么",
    "ja": "来週の火曜日に新しいプリンターを会議室へ運びます",
    "ko": "화요일에 서버를 새로운 건물로 옮겼습니다",
    "th": "เราจะย้ายเซิร์ฟเวอร์ไปที่อาคารใหม่ในวันอังคาร",
    "snake": "the loop calls max_retry_count before it gives up",
    "camel": "we renamed it to openSocketTimeout last spring",
    "kebab": "the build agent is called heron-mill-4",
    "path": "the handshake lives in lib/net/dial.py since March",
    "decoy path": "a fishing net hangs in the lib, dial the owner before you go; dial twice",
    "scoped": "install @acme/util and pin it",
    "ticket": "closed by TICKET-0042-B this morning",
    "decoy ticket": "the ticket to Berlin had seat 42 and cost 7 euro",
    "version": "upgraded the proxy to 7.31.2 without trouble",
    "decoy version": "on 7 March we counted 31 boats and 2 swans",
    "shelf": "the manuals are in Room 7: Shelf 2",
    "cpp": "the parser is written in C++ and old",
    "c": "the parser is written in C and older",
    "csharp": "the parser is written in C# and new",
    "dotnet": "ported the whole thing to .NET in a week",
    "accent": "they met at the Café Müller near the river",
    "width": "the code on the door is ４７１１ＸＹ now",
    "mail": "write to petra.lind@mail.example.org about the rent",
    "url": "the rules are at https://docs.example.net/guide/quota?lang=en",
    "hash": "bisect ended at 3f9c0e1b7d52a68840c1 on the branch",
    "colons": "we fill a std::deque in the reader",
    "flag": "run it with --dry-run first",
    "decoy flag": "a dry summer and a long run, dry again",
    "issue": "this was reported as #1873 by a guest",
    "ru": "мы перенесли сервер во вторник",
    "hi": "हमने मंगलवार को सर्वर बदल दिया",
    "he": "העברנו את השרת ביום שלישי",
    "ar": "نقلنا الخادم يوم الثلاثاء",
    "el": "μεταφέραμε τον διακομιστή την Τρίτη",
    "emoji": "shipped it 🚀 and the family 👨‍👩‍👧 cheered",
    "plain": "the dogs were running along the river",
}


class Ranker:
    """BM25 over the terms of a few texts, ties broken by name."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.postings: dict[bytes, list[tuple[str, int]]] = defaultdict(list)
        self.lengths: dict[str, int] = {}
        for name, text in texts.items():
            found, self.lengths[name] = analyze.analyze(text)
            for term, count in Counter(found).items():
                self.postings[term].append((name, count))
        self.mean = sum(self.lengths.values()) / len(self.lengths)

    def scores(self, query: str) -> dict[str, float]:
        scores: dict[str, float] = defaultdict(float)
        total = len(self.lengths)
        for term, weight in query_terms(query):
            posting = self.postings.get(term, [])
            idf = math.log(1 + (total - len(posting) + 0.5) / (len(posting) + 0.5))
            for name, count in posting:
                norm = 1.2 * (0.4 + 0.6 * self.lengths[name] / self.mean)
                scores[name] += weight * idf * count * 2.2 / (count + norm)
        return dict(scores)

    def ranking(self, query: str) -> list[str]:
        scores = self.scores(query)
        return sorted(scores, key=lambda name: (-scores[name], name))


@pytest.fixture(scope="module")
def ranker() -> Ranker:
    return Ranker(CORPUS)


FULL = [
    ("zh", "我们决定星期二"),
    ("zh", "移动服务器"),
    ("zh", "node-qrt7"),
    ("zh2", "我昨天买了一辆自行车"),
    ("ja", "新しいプリンター"),
    ("ko", "서버를"),
    ("th", "ย้ายเซิร์ฟเวอร์"),
    ("snake", "max_retry_count"),
    ("camel", "openSocketTimeout"),
    ("kebab", "heron-mill-4"),
    ("path", "lib/net/dial.py"),
    ("scoped", "@acme/util"),
    ("ticket", "TICKET-0042-B"),
    ("version", "7.31.2"),
    ("version", "v7.31.2"),
    ("shelf", "Room 7: Shelf 2"),
    ("cpp", "C++"),
    ("c", "C"),
    ("csharp", "C#"),
    ("dotnet", ".NET"),
    ("accent", "Café Müller"),
    ("width", "4711XY"),
    ("width", "４７１１ＸＹ"),
    ("mail", "petra.lind@mail.example.org"),
    ("url", "https://docs.example.net/guide/quota?lang=en"),
    ("hash", "3f9c0e1b7d52a68840c1"),
    ("colons", "std::deque"),
    ("flag", "--dry-run"),
    ("issue", "#1873"),
    ("ru", "сервер"),
    ("hi", "सर्वर"),
    ("he", "השרת"),
    ("ar", "الخادم"),
    ("el", "διακομιστή"),
    ("emoji", "🚀"),
    ("emoji", "👨‍👩‍👧"),
    ("plain", "the dogs were running"),
]

PARTS = [
    ("zh", "服务"),
    ("zh", "星期"),
    ("zh", "qrt7"),
    ("zh", "硬"),  # one character
    ("zh2", "行车"),
    ("zh2", "打印"),
    ("ja", "曜日"),
    ("ja", "ンタ"),
    ("ko", "서버"),
    ("ko", "건물"),
    ("ko", "옮겼"),
    ("ko", "니다"),
    ("th", "ฟเ"),
    ("th", "คา"),
    ("snake", "retry"),
    ("camel", "socket"),
    ("camel", "timeouts"),
    ("kebab", "mill"),
    ("path", "dial.py"),
    ("path", "net/dial.py"),
    ("path", "lib/net"),
    ("path", "net"),
    ("scoped", "util"),
    ("scoped", "acme"),
    ("ticket", "0042"),
    ("ticket", "ticket"),
    ("ticket", "b"),
    ("version", "31"),
    ("version", "7.31"),
    ("shelf", "shelf"),
    ("dotnet", "net"),
    ("accent", "cafe"),
    ("accent", "muller"),
    ("mail", "lind"),
    ("mail", "petra.lind"),
    ("url", "docs.example.net"),
    ("url", "guide"),
    ("url", "docs.example.net/guide/quota"),
    ("hash", "3f9c0e1"),
    ("hash", "3f9c0e1b7d52"),
    ("colons", "deque"),
    ("flag", "dry-run"),
    ("flag", "run"),
    ("issue", "1873"),
    ("plain", "dog"),
    ("plain", "runs"),
]

DRESSES = {
    "as it is": "{}",
    "upper case": "{}",
    "lower case": "{}",
    "quoted": '"{}"',
    "single quotes": "'{}'",
    "backquotes": "`{}`",
    "in brackets": "({}),",
    "with an unknown word": "{} zorbleflux",
    "after an unknown word": "xyzzyplugh {}",
    "as a question": "what was {}?",
}


def dressed(dress: str, words: str) -> str:
    if dress == "upper case":
        words = words.upper()
    elif dress == "lower case":
        words = words.lower()
    return DRESSES[dress].format(words)


@pytest.mark.parametrize("dress", DRESSES)
@pytest.mark.parametrize(("name", "words"), FULL)
def test_the_full_form_is_found_first(ranker: Ranker, name: str, words: str, dress: str) -> None:
    query = dressed(dress, words)
    assert ranker.ranking(query)[:1] == [name], query
    scores = ranker.scores(query)
    assert all(scores[other] < scores[name] for other in scores if other != name), scores


@pytest.mark.parametrize("dress", DRESSES)
@pytest.mark.parametrize(("name", "words"), PARTS)
def test_a_part_is_found_among_the_first(ranker: Ranker, name: str, words: str, dress: str) -> None:
    query = dressed(dress, words)
    assert name in ranker.ranking(query)[:3], query


@pytest.mark.parametrize("name", ["zh", "zh2", "ja", "th"])
def test_any_two_neighbours_of_an_unspaced_sentence_are_found(ranker: Ranker, name: str) -> None:
    text = "".join(char for char in CORPUS[name].split(",")[0] if not char.isascii())
    cut = CORPUS[name].find("node")
    pairs = [text[at : at + 2] for at in range(len(text) - 1) if at + 1 != cut]
    assert len(pairs) > 7
    for pair in pairs:
        assert name in ranker.ranking(pair)[:3], pair


@pytest.mark.parametrize(
    "query", ["zorbleflux", "xyzzy_plugh", "电梯", "9.9.9", "!!!", "", "the of"]
)
def test_what_stands_nowhere_is_not_found(ranker: Ranker, query: str) -> None:
    assert ranker.ranking(query) == []
    assert ranker.ranking(query + " proxy") == ["version"]


def test_single_letters_and_their_marked_forms_are_three_things(ranker: Ranker) -> None:
    for name, query in (("c", "C"), ("cpp", "C++"), ("csharp", "C#")):
        for form in (query, query.lower(), f"{query}.", f"({query})"):
            assert ranker.ranking(form) == [name], form
    assert terms("C++17") == [b"c++17", b"c++", b"17"]
    assert b"c" not in terms("C++ c++11 C# libc++")


def test_three_words_of_which_two_occur(ranker: Ranker) -> None:
    assert ranker.ranking("星期二 服务器 电梯")[0] == "zh"
    assert ranker.ranking("プリンター 電車 会議室")[0] == "ja"
    assert ranker.ranking("화요일 건물 자전거")[0] == "ko"
    assert ranker.ranking("เซิร์ฟเวอร์ อาคาร จักรยาน")[0] == "th"


# --- single forms ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The dogs were running", "dog run"),
        ("don't you're can't", "don't you're can't"),  # nothing but stop words
        ("Petra's dogs' bowls", "petra dog bowl"),
        ("O'Brien", "obrien brien"),
        ("Don won the race in May", "don won race may"),  # not the stop words they look like
        ("lib/net/dial.py", "lib/net/dial.py lib net dial.py dial py"),
        ("/etc/hosts", "etc/hosts etc host"),
        ("2023-05-07T09:30Z", "2023-05-07t09:30z 2023-05-07 2023 05 07 09 30z 30"),
        ("C:\\Users\\ann", "c:\\users\\ann c user ann"),
        ("src/.env", "src/.env src .env env"),
        ("max_retry_count", "max_retry_count max retri count"),
        ("__init__", "__init__ init"),
        ("parseUTF8String", "parseutf8string pars utf string"),
        ("HTTPServer", "httpserver http server"),
        ("URLs", "url"),
        ("iPhone", "iphon phone"),
        ("node-qrt7", "node-qrt7 node qrt7 qrt"),
        ("3pm 25th 2nd", "3pm 3 pm 25th 25 2nd 2"),
        ("aZ3kQ9xW2bL", "az3kq9xw2bl"),  # no parts in random ids
        ("7.31.2", "7.31.2 7.31 7 31 2"),
        ("v7.31.2", "v7.31.2 7.31.2 7.31 7 31 2"),
        ("python3.11", "python3.11 3.11 3 11 python"),
        ("foo-1.2.tar.gz", "foo-1.2.tar.gz foo-1.2 foo 1.2 1 2 tar gz"),
        ("@acme/util", "@acme/util acme/util acm util"),
        ("util@2.0", "util@2.0 util 2.0 2 0"),
        ("--dry-run", "--dry-run dry-run dri run"),
        ("#123", "#123 123"),
        (".NET", ".net net"),
        ("std::vector<int>", "std::vector std vector int"),
        ("obj->field", "obj field"),
        ("a/b#7", "a/b b a #7 7"),
        ("U.S.", "u.s us u s"),
        ("AT&T", "at&t t at"),
        ("move_to_front", "move_to_front move front to"),
        ("see:https://x.org/a/", "see x.org/a https x.org x org a"),
        ("git+ssh://host/r?b=1#c", "host/r?b=1#c git+ssh host/r host r b 1 c"),
        ("3f9c0e1b7d52", "3f9c0e1b7d52 3f9c0e1"),
        ("wait...what now--stop", "wait stop"),
        ("key=value,x;y", "key valu x y"),
        ("\u201cquoted\u201d don\u2019t", "quot"),
        ("well\u2010known", "well-known well known"),
        ("co\u00adoperate", "cooper"),
        ("café", "café cafe"),
        ("cafés naïve", "cafés cafe naïve naiv"),
        ("Łódź Straße", "łódź lodz strass"),
        ("größeMax", "grössemax grossemax grösse gross max"),
        ("ｆｕｌｌ　１２", "full 12"),
        ("٣٤", "٣٤ 34"),
        ("ﬁne ①", "fine 1"),
        ("服", "服"),
        ("服务器", "服务 务器 服 务 器"),
        ("運びます", "運び びま ます 運"),
        ("3月15日", "3 月 15 日"),
        ("ไป", "ไป"),
        ("ที่", "ที ี่"),
        ("ไท\u200bย", "ไท ทย"),  # a break that is not seen
        ("집을 서버를 옮겼습니다", "집을 집 서버를 서버 버를 서 옮겼습니다 옮겼 겼습 습니 니다"),
        ("हिन्दी", "हिन्दी"),
        ("می\u200cخواهم", "میخواهم"),
        ("שָׁלוֹם", "שָׁלוֹם שלום"),
        ("ёлка", "ёлка елка"),
        ("👍🏽👍", "👍🏽 👍 👍"),
        ("❤\ufe0f❤", "❤ ❤"),
        ("👩\u200d💻ok", "👩\u200d💻 ok"),
        ("🇩🇪🇫🇷", "🇩🇪 🇫🇷"),
        ("1\ufe0f\u20e3", "1"),
        ("─── ■ → €5", "5"),
        ("____ -- ...", ""),
        ("a\x00b\x01 \ud800 x\udfff", "b x"),
    ],
)
def test_terms(text: str, expected: str) -> None:
    wanted = [unicodedata.normalize("NFKC", word).encode() for word in expected.split()]
    assert terms(text) == wanted


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("", 0),
        ("the dogs were running", 2),
        ("to be or not to be", 6),
        ("lib/net/dial.py max_retry_count", 2),
        ("https://docs.example.net/guide/quota?lang=en", 1),
        ("服务器坏了", 3),
        ("ย้ายเซิร์ฟเวอร์", 4),
        ("서버를 옮겼습니다", 2),
        ("👨‍👩‍👧 🚀", 2),
    ],
)
def test_length_counts_words(text: str, length: int) -> None:
    assert analyze.analyze(text)[1] == length


def test_stop_words_are_kept_only_where_nothing_else_is() -> None:
    assert 170 <= len(STOP_WORDS) <= 190
    assert terms("to be or not to be") == b"to be or not to be".split()
    assert dict(query_terms("To be, or NOT to be?")) == {b"to": 1, b"be": 1, b"or": 1, b"not": 1}
    assert terms("to be or not to be, Hamlet") == [b"hamlet"]
    assert query_terms("to be or not to be, Hamlet") == [(b"hamlet", 1.0)]
    ranker = Ranker({"stops": "to be or not to be", "other": "be quick about the laundry"})
    assert ranker.ranking("not to be") == ["stops"]
    assert ranker.ranking("the laundry") == ["other"]


# --- weights --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "whole"),
    [
        ("lib/net/dial.py", b"lib/net/dial.py"),
        ("openSocketTimeout", b"opensockettimeout"),
        ("a/b/c/d/e/f/g/h/i/j/k/l/m/n.o", b"a/b/c/d/e/f/g/h/i/j/k/l/m/n.o"),
        ("7.31.2", b"7.31.2"),
        ("서버를새로운건물로", "서버를새로운건물로".encode()),
    ],
)
def test_the_parts_of_one_identifier_count_like_one_word(query: str, whole: bytes) -> None:
    weights = dict(query_terms(query))
    assert weights.pop(whole) == 1.5
    assert len(weights) > 1
    assert sum(weights.values()) == pytest.approx(1.0)
    assert max(weights.values()) < 1.0


@pytest.mark.parametrize(("run", "total"), [("服务", 1.0), ("服务器", 1.5), ("服务器坏了", 2.0)])
def test_an_unspaced_run_counts_like_one_or_two_words(run: str, total: float) -> None:
    weights = query_terms(run)
    assert len(weights) == len(run) - 1
    assert sum(weight for _, weight in weights) == pytest.approx(total)


def test_a_plain_word_counts_one_however_often_it_comes() -> None:
    assert query_terms("dogs dog DOG net") == [(b"dog", 1.0), (b"net", 1.0)]
    assert dict(query_terms("lib/net net"))[b"net"] == 1.0  # the word outweighs the part
    assert dict(query_terms("café")) == {"café".encode(): 1.0, b"cafe": 0.5}


# --- surface tokens -------------------------------------------------------------------------------


def test_distinct_tokens_are_what_stands_there() -> None:
    text = "The Dogs' lib/net/Dial.py, Café שָׁלוֹם 服务器 서버를 👍🏽 C++ petra@x.org"
    found = distinct_tokens(text)
    wanted = "the dogs lib/net/dial.py lib net dial py café שָׁלוֹם 服务器 서버를 👍🏽 c++ c "
    wanted += "petra@x.org petra x org"
    expected = {unicodedata.normalize("NFKC", word).encode() for word in wanted.split()}
    assert found == expected
    assert distinct_tokens("... \ud800 ____") == set()
    assert distinct_tokens("x" * 500) == {b"x" * 500}


# --- hostile and large texts ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "x" * 10_000_000,
        "xY" * 2_000_000,
        "a.b" * 500_000,
        "1.1" * 500_000 + "x",
        "a+" * 500_000,
        "a++" * 500_000,
        "'s" * 500_000,
        "-" * 1_000_000,
        "http://" * 150_000,
        "http://a" + "/?" * 500_000,
        "服\u200d" * 300_000 + "\u200b" * 300_000,
        "é\u0301" * 300_000,
        "👍\u200d" * 300_000,
        "\ud800a" * 300_000,
        "f" * 7 + "0" * 1_000_000,
        "A" * 60 + "a" * 1_000_000,
    ],
    ids=lambda text: f"{text[:6]!a}x{len(text)}",
)
def test_large_pieces_take_linear_time_and_give_short_terms(text: str) -> None:
    started = time.process_time()
    found, length = analyze.analyze(text)
    assert time.process_time() - started < 5
    assert length >= 0
    assert max(map(len, found), default=0) <= MAX_TERM_BYTES


def test_a_term_that_is_too_long_is_still_found() -> None:
    long, other = "k" * 300, "k" * 301
    assert len(terms(long)[0]) <= MAX_TERM_BYTES
    assert terms(long) == [term for term, _ in query_terms(long.upper())]
    assert terms(long) != terms(other)
    wide = "é" * 150
    assert terms(wide)[0].decode().startswith("é" * 60)
    assert terms(unicodedata.normalize("NFD", wide)) == terms(wide)


@pytest.mark.parametrize("alphabet", ["abc /._-", "服务器坏了一辆", "éñü '", "aB9:@#+", "ก้า👍🏽 "])
def test_a_query_of_ten_thousand_characters_is_quick(alphabet: str) -> None:
    query = "".join(random.Random(5).choices(alphabet, k=10_000))
    started = time.process_time()
    assert query_terms(query)
    assert time.process_time() - started < 0.5


def test_the_memo_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analyze, "_MEMO_ENTRIES", 100)
    monkeypatch.setattr(analyze, "_memo", {})
    memo = analyze._memo
    text = " ".join(f"word{number}x" for number in range(1000))
    first = terms(text)
    assert 0 < len(memo) <= 100
    assert terms(text) == first
    terms("y" * 100 + " " + "服务器坏了" * 5 + " kept")
    assert "kept" in memo
    assert all(len(piece) < 100 for piece in memo)
    assert "服务器坏了" * 5 not in memo


def test_importing_costs_no_stemmer_and_no_typing() -> None:
    code = (
        "import re, sys; before = set(sys.modules); import remem.index.analyze as a;"
        "new = set(sys.modules) - before; a.terms('hello'); import json;"
        "print(json.dumps([sorted(new), 'Stemmer' in sys.modules]))"
    )
    shown = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    new, after_use = json.loads(shown.stdout)
    assert "remem.index.analyze" in new
    assert not {"Stemmer", "blake3", "typing", "dataclasses", "numpy"} & set(new)
    assert after_use


def test_the_stamp_names_both_versions() -> None:
    version, _, stemmer = analyze.stamp().partition("/")
    assert int(version) == analyze.VERSION
    assert stemmer[0].isdigit()


def test_chat_turns_pass_at_speed(shared_data: Path) -> None:
    samples = json.loads((shared_data / "locomo" / "locomo-dev.json").read_text("utf-8"))
    turns = [
        turn["text"]
        for sample in samples
        for key, session in sample["conversation"].items()
        if isinstance(session, list)
        for turn in session
    ]
    assert len(turns) > 2000
    for turn in turns:
        terms(turn)
    started = time.process_time()
    for turn in turns:
        terms(turn)
    assert len(turns) / (time.process_time() - started) > 15_000


# --- properties -----------------------------------------------------------------------------------

SPICE = [
    *"abzABZ019 _-./\\:@#+'\"~&$?=% \t\n",
    *"éßİıſŁøµ\u0345\u0301\u0308\u1e9e",
    *"服务ーンがｶﾞ々ก้ำ한국\u1112\u1161\u11ab집",
    *"हिन्दीשָׁמيًـабёЙΣς",
    *"👍🏽❤🇩🇪👨\u200d\ufe0f\u20e3①½ﬁ…’‐−\u200b\u200c\u00ad\u202e",
    *"\x00\x1f\x85\xa0\ud800\udfff\U000e0067\U0010ffff\U0002f800",
    "://",
    "c++",
    "the ",
    "Dial",
    "7.3",
    "3f9c0e1b",
]
texts = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from(SPICE), max_size=40).map("".join),
)
ascii_texts = st.text(
    st.sampled_from(sorted({c for c in SPICE if c.isascii() and len(c) == 1})), max_size=60
)


@given(texts)
def test_no_text_raises_and_every_term_is_short_utf8(text: str) -> None:
    found, length = analyze.analyze(text)
    weighted = query_terms(text)
    for term in [*found, *(term for term, _ in weighted), *distinct_tokens(text)]:
        assert term.decode()
    assert all(0 < len(term) <= MAX_TERM_BYTES for term in found)
    assert all(0 < weight <= 2.0 for _, weight in weighted)
    assert len({term for term, _ in weighted}) == len(weighted)
    assert (length > 0) == bool(found)


@given(texts)
def test_composed_and_decomposed_text_have_the_same_terms(text: str) -> None:
    composed, decomposed = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    assert analyze.analyze(composed) == analyze.analyze(decomposed) == analyze.analyze(text)
    assert query_terms(composed) == query_terms(decomposed)
    assert distinct_tokens(composed) == distinct_tokens(decomposed)


@given(ascii_texts)
def test_case_does_not_matter_in_ascii(text: str) -> None:
    assert terms(text.lower()) == terms(text.upper())
    assert query_terms(text.lower()) == query_terms(text.upper())
    words = {term for term, weight in query_terms(text.lower()) if weight >= 1}
    assert words <= set(terms(text))  # parts differ where case changes, words and wholes do not
    assert distinct_tokens(text.lower()) == distinct_tokens(text)


@given(texts)
def test_a_text_finds_itself_by_all_its_terms(text: str) -> None:
    asked = {term for term, _ in query_terms(text)}
    found = set(terms(text))
    assert asked <= found
    for term in found - asked:
        word = term.decode()
        assert word in STOP_WORDS or (len(word) == 1 and not word.isascii()), word


@given(texts, texts)
def test_the_terms_of_a_piece_do_not_depend_on_its_neighbours(left: str, right: str) -> None:
    together, length = analyze.analyze(f"{left} {right} anchor")
    first, one = analyze.analyze(f"{left} anchor")
    second, two = analyze.analyze(f"{right} anchor")
    assert together == first[:-1] + second
    assert length == one + two - 1


@given(texts)
def test_the_memo_changes_nothing(text: str) -> None:
    analyze._memo.clear()
    cold = analyze.analyze(text)
    warm = analyze.analyze(text)
    assert cold == warm

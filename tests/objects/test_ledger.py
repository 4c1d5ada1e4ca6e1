"""The ledger: each kind of structure, malformed structure, and prose that must derive nothing."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.objects.derive import ledger
from remem.objects.derive._ledger_json import leaves
from remem.objects.derive.claim import Claim
from remem.objects.model import MEMORY_KINDS, Observation, Scope, Source

SCOPE = Scope("t", "p", "c", "a", "s")
SHA = "0123456789abcdef0123456789abcdef01234567"


def observation(
    text: str,
    *,
    role: str = "tool",
    origin: str = "tool",
    kind: str = "",
    source: Source | None = None,
    meta: dict[str, object] | None = None,
) -> Observation:
    return Observation(
        bytes(16), SCOPE, None, text, role, "", origin, source, None, None, None, kind, meta or {}
    )


def derive(text: str, uri: str = "") -> list[Claim]:
    return ledger.derive(observation(text, source=Source(uri) if uri else None))


def triples(claims: list[Claim]) -> list[tuple[str, str, str]]:
    return [(c.subject, c.predicate, c.object) for c in claims]


def lines(claims: list[Claim]) -> list[str]:
    return [c.text for c in claims]


# --- JSON


def test_json_leaves() -> None:
    text = (
        '{"server": {"port": 8080, "tls": true, "hosts": ["a-1", "b-2"]}, "a b": null, "n": -1.5e3}'
    )
    found = derive(text)
    assert lines(found) == [
        "server.port = 8080",
        "server.tls = true",
        "server.hosts[0] = a-1",
        "server.hosts[1] = b-2",
        '["a b"] = null',
        "n = -1.5e3",
    ]
    assert triples(found)[0] == ("server.port", "is", "8080")
    assert text[found[0].start : found[0].end] == '"port": 8080'
    assert text[found[2].start : found[2].end] == '"a-1"'
    assert not any(c.single for c in found)


def test_json_array_of_objects() -> None:
    assert lines(derive('[{"id": 1}, {"id": 2}]')) == ["[0].id = 1", "[1].id = 2"]


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"a": 1',
        '{"a": 1} and more',
        'see {"a": 1}',
        '{"a": 1,}',
        "{'a': 1}",
        '{"a": 1, "a": 2}',
        '{"x": {"a": 1, "a": 2}}',
        '{"a": 01}',
        '{"a": NaN}',
        '{"a": "\\ud800"}',
        '{"a": 1}\n{"a": 2}',
        "[1, 2]",
        '["a"]',
        "[]",
        "{}",
        "42",
        '"text"',
        "true",
        "null",
        pytest.param("[" * 100_000, id="open arrays"),
        pytest.param('{"a":' * 30_000, id="open objects"),
        pytest.param('{"a":' * 40 + "1" + "}" * 40, id="too deep"),
    ],
)
def test_json_that_says_nothing(text: str) -> None:
    assert derive(text) == []
    assert derive('{"a": 1}')


def test_json_long_strings_are_no_values() -> None:
    text = json.dumps({"log": "x" * 201, "lines": "a\nb", "short": "x" * 200, "empty": ""})
    assert [(c.subject, c.object) for c in derive(text)] == [("short", "x" * 200), ("empty", '""')]


def test_a_document_replaces_its_earlier_values() -> None:
    (claim,) = derive('{"port": 1}', "conf/app.json")
    assert (claim.subject, claim.predicate, claim.single) == ("conf/app.json port", "is", True)
    item = ledger.derive(observation('{"port": 1}', source=Source("chat.jsonl", "17")))
    assert (item[0].subject, item[0].single) == ("port", False)


NAMES = st.one_of(st.sampled_from(["a", "b", "port", "a b", "a.b", "[0]", "", "\u00e4", '"', "\\"]))
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**12), 10**12),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=12),
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=30,
)


def walk(value: object, path: str) -> list[tuple[str, str]]:
    if isinstance(value, dict):
        found = []
        for name, inner in value.items():
            plain = re.fullmatch(r"[^\W\d][\w-]*", name) is not None
            quoted = f"[{json.dumps(name, ensure_ascii=False)}]"
            step = (f".{name}" if path else name) if plain else quoted
            found += walk(inner, path + step)
        return found
    if isinstance(value, list):
        return [leaf for n, inner in enumerate(value) for leaf in walk(inner, f"{path}[{n}]")]
    return [(path, value if isinstance(value, str) else json.dumps(value))]


@given(
    st.dictionaries(NAMES, TREES, min_size=1, max_size=4), st.sampled_from([None, 1]), st.booleans()
)
def test_json_round_trip(tree: dict[str, object], indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(tree, indent=indent, ensure_ascii=ascii_only)
    assert [(leaf.path, leaf.value) for leaf in leaves(text)] == walk(tree, "")
    wanted = [(path, value or '""') for path, value in walk(tree, "")][: ledger.MAX_CLAIMS]
    found = derive(text)
    assert [(c.subject, c.object) for c in found] == wanted
    for claim in found:
        part = text[claim.start : claim.end].partition(":" if '":' in text[claim.start :] else "\0")
        assert part[0].startswith('"') or part[0].strip() == claim.object


# --- CSV


def test_csv_rows() -> None:
    text = 'city,population,in_eu\nBerlin,3700000,true\n"Paris, FR",2100000,true\n'
    found = derive(text)
    assert lines(found) == [
        "Berlin: population = 3700000",
        "Berlin: in_eu = true",
        "Paris, FR: population = 2100000",
        "Paris, FR: in_eu = true",
    ]
    assert triples(found)[0] == ("Berlin", "population", "3700000")
    assert text[found[0].start : found[0].end] == "Berlin,3700000"


def test_csv_other_delimiters_quotes_and_repeated_keys() -> None:
    assert lines(derive("a;n\nx;1\ny;2")) == ["x: n = 1", "y: n = 2"]
    assert lines(derive('a\tn\nx\t1\n"q""q"\t2')) == ["x: n = 1", 'q"q: n = 2']
    assert lines(derive("a,n\nx,1\nx,2")) == [
        "row 1: a = x",
        "row 1: n = 1",
        "row 2: a = x",
        "row 2: n = 2",
    ]


def test_csv_of_words_only_needs_the_name_of_the_source() -> None:
    text = "name,role\nanna,lead\nbo,dev"
    assert derive(text) == []
    found = derive(text, "team.csv")
    assert lines(found) == ["anna: role = lead", "bo: role = dev"]
    assert found[0].single
    assert found[0].subject == "team.csv anna"


@pytest.mark.parametrize(
    "text",
    [
        "a,n",
        "a,n\n",
        "a,n\nx",
        "a,n\nx,1,2",
        "a,n\nx, 1",
        "a, n\nx,1",
        "a,a\nx,1",
        "1,2\n3,4",
        'a,n\nx,"1',
        'a,n\nx,"1"2',
        'a,n\nx"y,1',
        "a,n\n\nx,1",
        "a,n\nx,1\n,\n",
        "Hello there, world\nand so on, 5",
        pytest.param("a,n\n" + "x,1\n" * 201, id="too long"),
        pytest.param(
            ",".join(f"c{n}" for n in range(31)) + "\n" + ",".join("1" * 31), id="too wide"
        ),
    ],
)
def test_csv_that_says_nothing(text: str) -> None:
    assert derive(text) == []
    assert derive("a,n\nx,1")


@given(
    st.lists(
        st.tuples(
            st.text("abcXYZ\u00e9 ,\"'", min_size=1, max_size=6).map(str.strip).filter(bool),
            st.integers(0, 999),
        ),
        min_size=1,
        max_size=8,
        unique_by=lambda row: row[0],
    )
)
def test_csv_round_trip(rows: list[tuple[str, int]]) -> None:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("key", "value"))
    writer.writerows(rows)
    found = derive(out.getvalue())
    assert [(c.subject, c.object) for c in found] == [(key, str(value)) for key, value in rows]


# --- HTTP


def test_http_response() -> None:
    text = (
        "HTTP/1.1 404 Not Found\nContent-Type: text/html\nSet-Cookie: a=b\nX-Api-Key: k\n\n<html>"
    )
    found = derive(text)
    assert triples(found) == [
        ("response", "status", "404"),
        ("response", "content_type", "text/html"),
    ]
    assert text[found[1].start : found[1].end] == "Content-Type: text/html"
    assert all(c.kind == "event" for c in found)


def test_http_request_and_redirects() -> None:
    assert triples(derive("GET /a?b HTTP/1.1\nHost: example.org\nAuthorization: Basic x\n")) == [
        ("request", "method", "GET"),
        ("request", "target", "/a?b"),
        ("request", "host", "example.org"),
    ]
    two = "HTTP/1.1 301 Moved\nLocation: /b\n\nHTTP/2 200\nServer: x\n\nbody"
    assert [(c.subject, c.object) for c in derive(two)] == [
        ("response 1", "301"),
        ("response 1", "/b"),
        ("response 2", "200"),
        ("response 2", "x"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "HTTP/1.1 200 OK",
        "HTTP/1.1 200 OK\n\nbody",
        "HTTP/1.1 999 OK\nA: b",
        "HTTP/1.1 OK\nA: b",
        "HTTP/1.1 200 OK\nno field",
        "HTTP/1.1 200 OK\nA b: c",
        "HTTP/1.1 301 Moved\nA: b\n\nHTTP/1.1 200 OK\nno field",
        "HTTP/1.1 is a protocol\nNote: it is old",
        "GET the book\nNote: HTTP/1.1",
        "Hello\nHTTP/1.1 200 OK\nA: b",
    ],
)
def test_http_that_says_nothing(text: str) -> None:
    assert derive(text) == []
    assert derive("HTTP/1.1 200 OK\nA: b")


# --- whose words, bounds, properties

DIFF = """\
diff --git a/a.py b/a.py
new file mode 100644
index 0000000..1111111
--- /dev/null
+++ b/a.py
@@ -0,0 +1,2 @@
+class A:
+    version = "1.0"
"""


@pytest.mark.parametrize(
    ("role", "origin", "read"),
    [
        ("tool", "tool", True),
        ("user", "owner", True),
        ("", "owner", True),
        ("assistant", "agent", False),
        ("assistant", "owner", False),
        ("tool", "untrusted", False),
        ("user", "agent", False),
    ],
)
def test_no_model_writes_this_track(role: str, origin: str, read: bool) -> None:
    for text in ('{"a": 1}', DIFF, "a,n\nx,1", "HTTP/1.1 200 OK\nA: b"):
        assert bool(ledger.derive(observation(text, role=role, origin=origin))) is read


def test_the_first_claims_are_kept() -> None:
    found = derive(json.dumps({f"k{n}": n for n in range(200)}))
    assert [c.object for c in found] == [str(n) for n in range(ledger.MAX_CLAIMS)]
    assert derive(json.dumps({"a": "x " * 90_000, "b": 1}))
    assert not derive(json.dumps({"a": "x " * 110_000, "b": 1}))


WORDS = st.sampled_from(
    """the a server port is 8080 we moved host budget, 40k so that { } [ ] "quoted" HTTP/1.1 200 OK
    --- +++ @@ diff git index version = 1.2 a,b c;d x:y GET /path M A commit reverts
    and or""".split()
)
PROSE = st.lists(
    st.lists(WORDS, min_size=3, max_size=9).map(lambda words: "We " + " ".join(words) + "."),
    min_size=1,
    max_size=5,
).map("\n".join)


@given(PROSE)
def test_prose_derives_nothing(text: str) -> None:
    assert derive(text) == []
    assert ledger.derive(observation(text, kind="commit", meta={"commit": SHA})) == []


PIECES = st.sampled_from(
    [
        *("{", "}", "[", "]", '"a"', ":", ",", "1", "null", '"', "\\", " ", "\n", "\t", ";"),
        *("a,n\n", "x,1\n", "HTTP/1.1 200 OK\n", "A: b\n", "GET / HTTP/1.1\n", DIFF, DIFF[:300]),
        *("diff --git a/x b/x\n", "--- a/x\n", "+++ b/x\n", "@@ -1 +1 @@\n", "-x\n", "+y\n"),
        *("rename from a\n", "rename to b\n", "new file mode 1\n", "@@ -1,99999999999 +1 @@\n"),
        *(
            '{"a": {"b": [1, "x"]}}',
            "\n\nM a.py +1 -1",
            f"This reverts commit {SHA}.",
            "\u0130",
            "\x00",
        ),
    ]
)


@given(
    st.one_of(st.lists(PIECES, max_size=14).map("".join), st.text(max_size=100)),
    st.sampled_from(["", "turn", "command", "commit"]),
    st.sampled_from([None, Source("t.csv"), Source("x.json", "1")]),
    st.dictionaries(
        st.sampled_from(["exit", "commit", "refs", "files"]),
        st.sampled_from([0, 1, -1, "1", SHA, None, [], ["v1.2"], [[1]], {}]),
    ),
)
def test_any_text(text: str, kind: str, source: Source | None, meta: dict[str, object]) -> None:
    seen = observation(text, kind=kind, source=source, meta=meta)
    found = ledger.derive(seen)
    assert found == ledger.derive(seen)
    assert len(found) <= ledger.MAX_CLAIMS
    for claim in found:
        assert 0 <= claim.start < claim.end <= len(text)
        assert claim.subject and claim.predicate and claim.object and claim.text
        assert claim.kind in MEMORY_KINDS
        claim.text.encode()
    assert len(set(triples(found))) == len(found)


def test_names_of_the_interface() -> None:
    assert ledger.NAME == "ledger"
    assert ledger.VERSION == 1

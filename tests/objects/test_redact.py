"""Secrets and private regions: what is found, what is left alone, and that cleaning converges."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.objects import detectors, gate, redact, secret_commands, secret_rules
from remem.objects.model import Incoming
from remem.objects.redact import EMPTY, Regions, Tally, by_lines, clean, scan, without_private

AWS_ID = "AKIAIOSFODNN7EXAMPLE"
AWS_SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA7bq\nc2VjcmV0LW1hcmtlcg==\n"
    "-----END RSA PRIVATE KEY-----"
)
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVPmB92K27uhbUJU1p1r"

# text, the secret in it, kind
FOUND = [
    (AWS_ID, AWS_ID, "aws-key"),
    (f"{AWS_ID},{AWS_SECRET}", AWS_SECRET, "aws-key"),
    (f"export AWS_SECRET_ACCESS_KEY={AWS_SECRET}", AWS_SECRET, "secret"),
    ("token ghp_abcdefghijklmnopqrstuvwxyz0123456789", "abcdefghijklmnop", "github-token"),
    ("github_pat_11ABCDEFG0abcdefghijkl_mnop", "11ABCDEFG0", "github-token"),
    ("glpat-abcdefghij0123456789", "abcdefghij0123456789", "gitlab-token"),
    ("glpat-aBcDeFGhIjkLMnoPqRsT", "aBcDeFGhIjkLMnoPqRsT", "gitlab-token"),
    ("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", "QwErTyuIoPasDFgh", "token"),
    ("xoxb-123456789012-abcdefghij", "123456789012-abcdefghij", "slack-token"),
    ("https://hooks.slack.com/services/T00000001/B0002/XXYYZZ", "B0002", "slack-token"),
    ("AIzaSyA1234567890abcdefghijklmnopqrstuv", "SyA1234567890", "google-key"),
    ("sk-proj-abcdefghijklmnop1234567890", "abcdefghijklmnop1234567890", "openai-key"),
    ("sk-ant-api03-abcdefghijk", "api03-abcdefghijk", "anthropic-key"),
    ("sk_live_abcdefghijklmnop12345678", "abcdefghijklmnop12345678", "stripe-key"),
    (f"scout may use remem_{'aB3-_' * 8}xyz", "aB3-_aB3-_", "remem-token"),
    (f"remem_{'aB3-_' * 8}xyz\n", "aB3-_aB3-_", "remem-token"),
    (f"_remem_{'aB3-_' * 8}xyz_", "aB3-_aB3-_", "remem-token"),
    (f"__remem_{'aB3-_' * 8}xyz__", "aB3-_aB3-_", "remem-token"),
    (f"see _remem_{'aB3-_' * 8}xyz_ in italics", "aB3-_aB3-_", "remem-token"),
    ("npm_abcdefghijklmnopqrstuvwxyz0123456789", "abcdefghijklmnop", "npm-token"),
    ("//registry.example/:_authToken=abcdef-123456", "abcdef-123456", "npm-token"),
    ("pypi-AgEIcHlwaS5vcmcCJDAwMDAwMDAw", "AgEIcHlwaS5vcmc", "pypi-token"),
    (JWT, "dBjftJeZ4CVPmB92K27uhbUJU1p1r", "jwt"),
    (PEM, "c2VjcmV0LW1hcmtlcg", "private-key"),
    (
        '{"key": "-----BEGIN PRIVATE KEY-----\\nMIIEmark\\n-----END PRIVATE KEY-----"}',
        "MIIEmark",
        "private-key",
    ),
    ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1r", "b3BlbnNzaC1r", "private-key"),
    ('curl -H "Authorization: Bearer abc.def-ghi_123456" x', "abc.def-ghi_123456", "authorization"),
    ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz", "authorization"),
    ("used bearer 0123456789abcdef there", "0123456789abcdef", "bearer"),
    ("postgres://admin:hunter2@db.local:5432/app", "hunter2", "url-password"),
    ("https://oauth2:a@b@host.example/x.git", "a@b", "url-password"),
    ("https://0123456789abcdef0123@github.com/x", "0123456789abcdef0123", "url-password"),
    ("password=hunter2", "hunter2", "password"),
    ("password=letmein", "letmein", "password"),
    ("DB_PASSWORD: 'open sesame'", "open sesame", "password"),
    ('{"password": "letmein"}', "letmein", "password"),
    ('{\\"password\\": \\"letmein9\\"}', "letmein9", "password"),
    ("passwd: s3cr3t!", "s3cr3t", "password"),
    ("mysql -u root -pS3cret db", "S3cret", "password"),
    ("mysqldump --password=abc123 x", "abc123", "password"),
    ("tool --password 'two words' -v", "two words", "password"),
    ("sshpass -p foo1 ssh h", "foo1", "password"),
    ("curl -u user:pa55 https://h.example", "pa55", "password"),
    ("docker login -u me -p Hunter22 reg", "Hunter22", "password"),
    ("PGPASSWORD=abc psql", "abc", "password"),
    ("my wifi password is Sommer2024!", "Sommer2024", "password"),
    ("export X_TOKEN=abcdef", "abcdef", "secret"),
    ("tool --token abcdef123", "abcdef123", "secret"),
    ("api_key: abcd1234efgh5678", "abcd1234efgh5678", "secret"),
    ('apiKey = "abcd1234efgh5678"', "abcd1234efgh5678", "secret"),
    ("client_secret=abc123def456", "abc123def456", "secret"),
    ("https://x.example/?access_token=abcdef123456&x=1", "abcdef123456", "secret"),
    ("Cookie: session=abcdef; other=1", "abcdef", "cookie"),
    ("X-Api-Key: abcdef123", "abcdef123", "api-key"),
    ("hvs.CAESIJ1abcdefghijklmnop12", "CAESIJ1abcdefghijklmnop12", "token"),
]
# What the detector library alone knows.
BY_LIBRARY = [
    ("SG.abcdefghijklmnopqrstuv.abcdefghijklmnopqrstuvwxyz01234567890abcdefg", "sendgrid-key"),
    ("123456789:ABCdefGHIjklMNOpqrSTUvwxyz_12345678", "telegram-token"),
    ("0123456789abcdef0123456789abcdef-us12", "mailchimp-key"),
]
LEFT_ALONE = [
    f"remem_{'aB3-_' * 8}xy",  # a character short of a token
    f"xremem_{'aB3-_' * 8}xyz",
    "hf_TrainerCallbackHandlerForEvaluationLoop",
    "the key to success is hard work, and the secret too",
    "commit 3f2a9c1d8e7b6a5f4e3d2c1b0a9f8e7d6c5b4a39",
    "id 550e8400-e29b-41d4-a716-446655440000",
    "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
    "aGVsbG8gd29ybGQgYmFzZTY0IG9mIHNtYWxsIHRoaW5ncw==",
    "/home/user/.ssh/id_rsa and /etc/passwd",
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7 user@host",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0B\n",
    "password = get_password()",
    'password = os.environ["PW"]',
    "connect(user=u, password=pw)",
    "def f(password: str, token: str = None): pass",
    "if password == other: pass",
    "getpass(prompt='Password: ', stream=None)",
    "the password is correct and the token expired: 401",
    "password is required; Password for user:",
    "PASSWORD=${DB_PASSWORD} and PASSWORD=$PW and password: ********",
    "apiKey: process.env.API_KEY",
    "max_tokens=1000 token_count: 12345",
    "key=value public_key=abc primary_key=True",
    "task-management-sk-something-long-enough-here",
    "cd $(pwd) && ls --sort=time",
    "https://user@host.example:8443/path?a=b",
    "mail me@example.com",
    "git config --global user.password",
]


@pytest.mark.parametrize(("text", "secret", "kind"), FOUND)
def test_found(text: str, secret: str, kind: str) -> None:
    assert secret in text
    found = scan(f"before it\n{text}\nafter it")
    assert secret not in found.text and found.secrets >= 1
    assert kind in found.kinds and f"[redacted:{kind}]" in found.text
    assert found.text.startswith("before it\n")
    if "PRIVATE KEY" not in text or "END" in text:  # an open PEM block reaches to the end
        assert found.text.endswith("\nafter it")


@pytest.mark.parametrize(("text", "kind"), BY_LIBRARY)
def test_found_by_the_library(text: str, kind: str) -> None:
    assert clean(f"x {text} y") == (f"x [redacted:{kind}] y", 1)


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_left_alone(text: str) -> None:
    assert clean(text) == (text, 0)


def test_every_plugin_that_is_named_exists_and_yields() -> None:
    kinds = [kind for kind, _ in detectors._plugins()]
    assert len(kinds) == len(detectors._PLUGINS) and "sendgrid-key" in kinds


@pytest.mark.parametrize("text", [text for text, *_ in (*FOUND, *BY_LIBRARY)])
def test_the_cheap_look_lets_every_secret_through(text: str) -> None:
    assert detectors.possible(text) and detectors.possible(f"plain words before {text}")


def _slow_look(text: str) -> bool:
    """What the cheap look is to answer, with nothing left out."""
    low = text.lower()
    if detectors._is_long(text) and detectors._token_like(text):
        return True
    if secret_commands.possible(text):
        return True
    if any(sign in text for sign in (":", "=", " -", "--")):
        return detectors._names_one(low) or detectors._runs_one(text)
    return detectors._TELLING.search(text) is not None and detectors._names_one(low)


_PIECES = st.lists(
    st.one_of(
        st.sampled_from([text for text, *_ in (*FOUND, *BY_LIBRARY)]),
        st.sampled_from(LEFT_ALONE),
        st.sampled_from(["key", "token", "Secret", "pwd", "pass", "passw", "is", "=", ": ", " --"]),
        st.text(max_size=16),
    ),
    max_size=5,
)


@given(_PIECES, st.sampled_from(["", " ", "\n"]))
def test_the_cheap_look_answers_as_the_slow_one(parts: list[str], between: str) -> None:
    text = between.join(parts)
    assert detectors.possible(text) == _slow_look(text)
    assert redact.suspect(text) or clean(text) == (text, 0)


@given(
    _PIECES,
    _PIECES,
    st.dictionaries(st.sampled_from(["cwd", "password", "n", "API_TOKEN"]), _PIECES),
)
def test_a_record_that_looks_plain_is_cleaned_to_itself(
    text: list[str], labels: list[str], meta: dict[str, list[str]]
) -> None:
    """What the gate takes for plain at a glance, the slow way leaves as it is."""
    record = Incoming(
        text=" ".join(text) or "x",
        speaker="".join(labels[:1]),
        source_id="".join(labels[1:3]),
        meta={name: " ".join(value) for name, value in meta.items()},
    )
    tally = Tally()
    slow = (
        tally.clean(record.text),
        tally.clean(record.speaker),
        tally.clean(record.source_id),
        tally.value(record.meta, 64),
    )
    plain = slow == (record.text, record.speaker, record.source_id, record.meta)
    assert plain or not gate._is_plain(record)
    assert not plain or not tally.changed


def test_the_cheap_look_stops_plain_prose() -> None:
    prose = "I went there yesterday; it was a passionate, understanding crowd of monkeys."
    assert not detectors.possible(prose)
    assert not redact.suspect(prose) and redact.suspect(prose + " <private>")


def test_a_rule_runs_only_beside_its_words() -> None:
    for kind, words, pattern, _ in secret_rules.rules():
        assert all(word == word.lower() for word in words), kind
        for text, *_ in FOUND:
            if words and pattern.search(text):
                assert any(word in text.lower() for word in words), (kind, text)


@given(
    st.lists(
        st.one_of(
            st.sampled_from([text for text, *_ in FOUND]),
            st.text(max_size=12),
            st.sampled_from(["<private>", "</PRIVATE>", "[redacted:", "password=", "://a:", "@b"]),
        ),
        max_size=6,
    ),
    st.sampled_from(["", " ", "\n", "="]),
)
def test_cleaning_what_is_clean_changes_nothing(parts: list[str], between: str) -> None:
    once, _ = clean(between.join(parts))
    again, count = clean(once)
    assert (again, count) == (once, 0)


def test_plain_text_does_not_load_the_library() -> None:
    code = (
        "import sys; from remem.objects.redact import clean\n"
        "clean('plain words of a person, 12 of them: https://example.org/a?b=c')\n"
        "print('detect_secrets' in sys.modules)\n"
        f"clean('SG.{'a' * 22}.{'b1' * 22}')\n"
        "print('detect_secrets' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


# -- private regions ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "left", "count"),
    [
        ("a<private>b</private>c", "ac", 1),
        ("a<PRIVATE>b</Private>c<private>d</private>e", "ace", 2),
        ("a<private>b<private>c</private>d</private>e", "ae", 1),
        ("a<private>b", "a", 1),
        ("a<private>b<private>c</private>d", "a", 1),
        ("a</private>b", "b", 1),
        ('a< private why="x" >b</ private >c', "ac", 1),
        ("a<privateer>b", "a<privateer>b", 0),
        ("private parts < 3", "private parts < 3", 0),
        ("<private></private>", "", 1),
    ],
)
def test_private_regions(text: str, left: str, count: int) -> None:
    assert without_private(text) == (left, count)
    assert clean(text) == (left, count)


@given(
    st.text(alphabet="ab\n", max_size=20),
    st.text(alphabet="xy<>/\n", max_size=30),
    st.text(alphabet="cd", max_size=20),
)
def test_what_is_private_is_gone_and_nothing_else(before: str, inside: str, after: str) -> None:
    text = f"{before}<private>{inside}</private>{after}"
    assert without_private(text)[0] == before + after


@given(st.lists(st.sampled_from(["<private>", "</private>", "a", "\n", "b c"]), max_size=12))
def test_line_by_line_gives_what_the_whole_gives(parts: list[str]) -> None:
    text = "".join(parts)
    lines = by_lines(text)
    assert lines.count("\n") == text.count("\n")
    seen = without_private(lines)[0]
    assert "".join(seen.split()) == "".join(without_private(text)[0].split())


@pytest.mark.parametrize("limit_b", [40, 1000])
def test_a_private_region_counts_for_no_limit(limit_b: int) -> None:
    inside = b"MARKER " * 300_000
    data = b"kept before <private>" + inside + b"</private> and after"
    got = redact.read(io.BytesIO(data), limit_b)
    assert b"MARKER" not in got and len(got) <= limit_b + len(EMPTY)
    assert without_private(got.decode())[0] == "kept before  and after"


def test_a_mark_that_two_reads_cut_is_a_mark() -> None:
    pad = b"x" * ((1 << 20) - 10)
    data = b"<private>" + pad + b"MARKER</priv" + b"ate>end <private>MARKER2"
    for shift in range(12):
        got = redact.read(io.BytesIO(b"y" * shift + data), 100)
        assert b"MARKER" not in got and b"end" in got


def test_too_much_is_still_too_much() -> None:
    assert len(redact.read(io.BytesIO(b"z" * 5000), 100)) > 100
    assert redact.read(io.BytesIO(b"z" * 100), 100) == b"z" * 100


def test_regions_of_a_stream_of_lines() -> None:
    regions = Regions()
    lines = ["a", "b <private> c", "d", "e </private> f", "g"]
    assert [regions.feed(line) for line in lines] == ["a", "b ", "", " f", "g"]
    assert (regions.count, regions.depth, regions.unopened) == (1, 0, 0)


# -- the fields of a record ---------------------------------------------------------------------


def test_a_secret_of_one_field_is_taken_out_of_the_next() -> None:
    tally = Tally()
    assert tally.clean("password=hunter2x") == "password=[redacted:password]"
    assert tally.clean("as hunter2x said") == "as [redacted:password] said"
    assert tally.codes() == ["redacted:2", "secret:password"]


def test_a_predicate_tells_of_its_object() -> None:
    assert Tally().triple(("wifi", "password", "letmein"))[2] == "[redacted:password]"
    assert Tally().triple(("wifi", "password policy", "strict"))[2] == "strict"
    assert Tally().triple(("door", "colour", "letmein"))[2] == "letmein"


def test_meta_is_looked_through_to_the_keys() -> None:
    token = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
    meta = {"env": {"API_TOKEN": "abc12345"}, token: 1, "list": [["x", {"t": token}]], "n": 7}
    tally = Tally()
    made = tally.value(meta, 64)
    assert token not in repr(made) and "abc12345" not in repr(made)
    assert isinstance(made, dict) and made["n"] == 7
    same = {"a": [1, "two"], "b": None}
    assert Tally().value(same, 64) is same

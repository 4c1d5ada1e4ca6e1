"""What was forgotten comes back through no door that takes text, whatever is put around it."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Runner

VALUE = "Zimtsternhausen Brückengasse 17"
OTHER = "Kirschkernweiler Mühlengasse 23"
DOORS = {
    "add": ["add", "{}"],
    "in brackets": ["add", "({})"],
    "quoted": ["add", "\u00bb{}\u00ab,"],
    "listed": ["add", "* **{}**"],
    "soft hyphen": ["add", "{:\u00ad}"],
    "zero width": ["add", "{:\u200b}"],
    "joiner": ["add", "{:\u2060}"],
    "full width": ["add", "{:wide}"],
    "task": ["task", "set", "k", "{}"],
    "key of a task": ["task", "set", "{}", "something"],
    "object": ["fact", "a", "b", "{}"],
    "object in brackets": ["fact", "a", "b", "({})"],
    "subject": ["fact", "{}", "is", "near"],
    "speaker": ["add", "a plain text", "--speaker", "{}"],
    "speaker, zero width": ["add", "a plain text", "--speaker", "{:\u200b}"],
    "source": ["add", "a plain text", "--source", "{}"],
    "alias": ["alias", "add", "{}", "home"],
    "what an alias stands for": ["alias", "add", "home", "{}"],
    "principal": ["principal", "add", "{}"],
    "pin": ["pin", "{}"],
    "loop": ["loop", "add", "{}", "--topic", "letters"],
    "topic": ["loop", "add", "write to them", "--topic", "{}"],
    "brief": ["brief", "{}"],
    "revise": ["revise", "ID", "{}"],
    "object of a revised fact": ["revise", "FACT", "way goes to {}"],
}


def filled_in(words: list[str], value: str, ids: dict[str, str]) -> list[str]:
    """A command line with a value in its place, dressed as its braces say."""
    found = []
    for word in words:
        begin, brace, rest = word.partition("{")
        how, _, end = rest.partition("}")
        if not brace:
            found.append(ids.get(word, word))
        elif how == ":wide":
            wide = "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in value)
            found.append(begin + wide + end)
        else:
            found.append(begin + value[:3] + how[1:] + value[3:] + end)
    return found


@pytest.fixture
def forgotten(run: Runner) -> tuple[Runner, dict[str, str]]:
    gone = run.add(VALUE)
    ids = {"ID": run.add("something else altogether")}
    ids["FACT"] = run("--json", "fact", "way", "goes to", "Lindau", code=0).json["id"]
    run("forget", "--now", gone, code=0)
    return run, ids


@pytest.mark.parametrize("door", DOORS)
def test_it_stays_away(forgotten: tuple[Runner, dict[str, str]], door: str) -> None:
    run, ids = forgotten
    done = run(*filled_in(DOORS[door], VALUE, ids))
    assert done.code == 3 and "blocked by tombstone" in done.err, done.shown
    everything = b"".join(p.read_bytes() for p in run.store.rglob("*") if p.is_file())
    for word in VALUE.split()[:2]:
        assert word.encode() not in everything
    run(*filled_in(DOORS[door], OTHER, ids), code=0)  # the control: the door is open


def test_an_import_counts_it(forgotten: tuple[Runner, dict[str, str]]) -> None:
    run, _ = forgotten
    lines = [
        {"text": "one", "speaker": VALUE},
        {"text": "two", "source": {"uri": VALUE, "id": "1"}},
        {"text": "three", "meta": {"deep": ["er", {"still": VALUE}]}},
        {"text": f"({VALUE})"},
        {"text": "four", "speaker": OTHER},
    ]
    given = "\n".join(json.dumps(line) for line in lines)
    done = run("--json", "import", "jsonl", "-", "--no-index", stdin=given, code=0).json
    assert (done["blocked"], done["new"]) == (4, 1)


def test_a_pack_does_not_bring_it(forgotten: tuple[Runner, dict[str, str]]) -> None:
    run, _ = forgotten
    there = {"REMEM_STORE": str(run.home / "there")}
    for value in (VALUE, OTHER):
        run("add", f"said by {value[0]}", "--speaker", value, code=0, env=there)
        run("add", f"({value})", code=0, env=there)
    run("export", run.home / "pack", code=0, env=there)
    done = run("--json", "import", "pack", run.home / "pack", "--no-index").json
    assert (done["blocked"], done["new"]) == (2, 2)
    everything = b"".join(p.read_bytes() for p in run.store.rglob("*") if p.is_file())
    assert OTHER.encode() in everything and VALUE.encode() not in everything


def test_dressed_up_when_it_was_forgotten_it_stays_away_plain(run: Runner) -> None:
    run("forget", run.add(f"({VALUE[:5]}\u00ad{VALUE[5:]})"), code=0)
    assert run("add", VALUE).code == 3
    run("add", OTHER, code=0)


@pytest.mark.parametrize("value", ["0815", "X7-22", "pi 31"])
def test_a_short_value_with_a_digit_stays_away_as_a_name_too(run: Runner, value: str) -> None:
    run("forget", run.add(value), code=0)
    run("fact", "safe pin", "is", value, code=3)
    run("task", "set", "pin", value, code=3)
    run("fact", "safe pin", "is", "0816", code=0)


@pytest.mark.parametrize("word", ["yes", "Ann", "green", "C++", "+5", "ok!", "tests"])
def test_a_short_or_common_word_blocks_itself_alone(run: Runner, word: str) -> None:
    run("forget", run.add(word), code=0)
    assert run("add", word).code == 3  # the text itself
    run("fact", "light", "is", word, code=0)
    run("add", "a plain text", "--speaker", word, code=0)
    plain = word.strip("+-!")
    if plain != word and word != "ok!":
        run("add", plain, code=0)


@pytest.mark.parametrize(
    ("word", "options"),
    [
        ("tool_result", ["--kind", "tool_result"]),
        ("assistant", ["--speaker", "assistant"]),
    ],
)
def test_what_the_program_calls_things_by_goes_on(
    run: Runner, word: str, options: list[str]
) -> None:
    run("forget", "--now", run.add(word), code=0)
    run("add", word, code=3)
    run("add", "Compiled eleven crates.", *options, code=0)
    run("forget", "--now", run.add("zimtstern_haus"), code=0)
    run("add", "Compiled twelve crates.", options[0], "zimtstern_haus", code=3)


@pytest.mark.parametrize("key", ["exit_code", "git_branch"])
def test_names_of_what_came_along_go_on(run: Runner, key: str) -> None:
    run("forget", "--now", run.add(key), code=0)
    line = json.dumps({"text": "the build ended", "meta": {key: 1}})
    assert run("add", "--jsonl", "-", "--json", stdin=line + "\n", code=0).json["new"] == 1
    run("forget", "--now", run.add("zimtstern_haus"), code=0)
    line = json.dumps({"text": "the build began", "meta": {"zimtstern_haus": 1}})
    assert "blocked" in run("add", "--jsonl", "-", "--json", stdin=line + "\n").out


def test_an_alias_goes_with_the_name_that_was_forgotten(run: Runner) -> None:
    gone = run.add("Grimbleshanks sleeps in the attic")
    run.add("Ann Lee feeds the cat")
    run("alias", "add", "Grimbleshanks", "Grimmo", code=0)
    run("alias", "add", "Annie", "Ann Lee", code=0)
    forgot = run("--json", "forget", "--now", gone, code=0)
    assert "1 alias that named it went too" in forgot.err
    listed = run("alias", "list", code=0).out
    assert "Grimm" not in listed and "Annie" in listed
    assert b"Grimbleshanks" not in b"".join(
        p.read_bytes() for p in run.store.rglob("*") if p.is_file()
    )
    run("verify", code=0)


def test_an_alias_stays_while_something_else_says_its_name(run: Runner) -> None:
    gone = run.add("Grimbleshanks sleeps in the attic")
    run.add("feed GRIMBLESHANKS at noon")
    run("alias", "add", "Grimbleshanks", "Grimmo", code=0)
    run("forget", gone, code=0)
    assert "Grimbleshanks" in run("alias", "list", code=0).out

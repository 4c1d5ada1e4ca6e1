"""Settings: where a value comes from, what stands above what, and how files are changed."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.cli.commands.config import _rewrite
from remem.cli.settings import BY_KEY, SETTINGS, read_file
from remem.index.hits import MAX_LIMIT

from .conftest import Runner


def user_file(run: Runner) -> Path:
    return run.home / ".config" / "remem" / "config.toml"


def write_user(run: Runner, text: str) -> None:
    user_file(run).parent.mkdir(parents=True, exist_ok=True)
    user_file(run).write_text(text)


def value(run: Runner, key: str, *words: str) -> tuple[object, str]:
    found = run("config", "get", key, "--json", *words, code=0).json
    return found["value"], found["origin"]


# -- precedence ---------------------------------------------------------------------------------


def test_option_environment_store_user_default(run: Runner) -> None:
    run("init", code=0)
    assert value(run, "agent") == ("none", "default")
    write_user(run, 'agent = "from user"\n')
    assert value(run, "agent") == ("from user", str(user_file(run)))
    (run.store / "config.toml").write_text('agent = "from store"\n')
    assert value(run, "agent") == ("from store", f"{run.store}/config.toml")
    run.env["REMEM_AGENT"] = "from env"
    assert value(run, "agent") == ("from env", "$REMEM_AGENT")
    assert value(run, "agent", "--agent", "from option") == ("from option", "option")
    assert run("--agent", "x", "config", "get", "agent", code=0).out == "x\n"
    run.env["REMEM_AGENT"] = ""
    assert value(run, "agent") == ("from store", f"{run.store}/config.toml")


def test_the_settings_in_force_are_used(run: Runner) -> None:
    run("init", code=0)
    run("config", "set", "session", "night shift", code=0)
    found = run.add("something")
    assert run("show", "--json", found).json["scope"]["session"] == "night shift"
    run("config", "set", "json", "true", code=0)
    assert run("log", code=0).json[0]["ref"] == found
    assert run("log", env={"REMEM_JSON": "no"}, code=0).out.startswith("1  ")


def test_global_options_stand_before_and_after_the_command(filled: Runner) -> None:
    store = str(filled.store)
    filled.env["REMEM_STORE"] = "/no/such/place"
    first = filled("--store", store, "--json", "log", code=0)
    second = filled("log", "--json", "--store", store, code=0)
    third = filled("--json", "log", f"--store={store}", code=0)
    assert first.out == second.out == third.out != ""
    assert filled("--store", "/no/other", "log", "--store", store, code=0).out


def test_the_store_is_looked_for_in_the_order_of_the_contract(run: Runner) -> None:
    def found(**env: str | None) -> str:
        place: str = run("status", "--json", env={"REMEM_STORE": None, **env}).json["store"]
        return place

    assert found() == f"{run.home}/.local/share/remem"
    assert found(XDG_DATA_HOME=f"{run.home}/data") == f"{run.home}/data/remem"
    assert found(XDG_DATA_HOME="relative") == f"{run.home}/.local/share/remem"
    write_user(run, f'store = "{run.home}/chosen"\n')
    assert found() == f"{run.home}/chosen"
    run("init", "--here", env={"REMEM_STORE": None}, code=0)
    assert found() == f"{run.cwd}/.remem"
    assert found(REMEM_STORE=str(run.store)) == str(run.store)


def test_without_a_home_the_user_database_is_asked(run: Runner) -> None:
    done = run("status", "--json", env={"HOME": None, "REMEM_STORE": None}, code=0)
    assert done.json["store"].endswith("/.local/share/remem")


def test_the_collection_and_where_it_comes_from(run: Runner) -> None:
    def found(*words: str) -> tuple[str, str]:
        status = run("status", "--json", *words, cwd=run.cwd / "repo").json
        return status["scope"]["collection"], status["collection_from"]

    git = run.cwd / "repo" / ".git"
    git.mkdir(parents=True)
    assert found() == (f"{run.cwd}/repo", "git root")
    (git / "config").write_text('[remote "origin"]\n\turl = git@example.org:team/app.git\n')
    assert found() == ("example.org/team/app", "git remote")
    assert found("--collection", "mine") == ("mine", "option")
    assert run("status", "--json").json["collection_from"] == "default"


# -- list and get -------------------------------------------------------------------------------


def test_list_names_every_setting_and_its_origin(run: Runner) -> None:
    found = {v["key"]: v for v in run("config", "list", "--json", code=0).json}
    assert list(found) == [s.key for s in SETTINGS]
    assert found["recall.limit"]["value"] == 10 and found["store"]["origin"] == "$REMEM_STORE"
    plain = run("config", "list", "--origin", code=0).out.splitlines()
    assert len(plain) == len(SETTINGS)
    line = next(line for line in plain if line.startswith("recall.limit"))
    assert line.split() == ["recall.limit", "10", "default"]
    short = run("config", "list", code=0).out
    assert "default" not in short.replace("profile", "").split("\n")[3]


def test_a_secret_is_not_listed(run: Runner) -> None:
    run.env["REMEM_EMBEDDER_KEY"] = "sk-very-secret"
    for words in ([], ["--origin"], ["--json"]):
        done = run("config", "list", *words, code=0)
        assert "sk-very-secret" not in done.out and "(set)" in done.out
    assert run("config", "get", "embedder_key", code=0).out == "sk-very-secret\n"


def test_get_of_what_is_not_there(run: Runner) -> None:
    assert "no setting" in run("config", "get", "no.such", code=2).err
    assert run("config", "get", code=2).out == ""
    assert run("config", "nonsense", code=2).out == ""


# -- changing -----------------------------------------------------------------------------------


def test_set_keeps_comments_and_order(run: Runner) -> None:
    run("init", code=0)
    path = run.store / "config.toml"
    path.write_text('# by hand\nagent = "a"  # why\n\n[recall]\n# few\nlimit = 3\n')
    run("config", "set", "recall.limit", "7", code=0)
    run("config", "set", "session", "s", code=0)
    assert path.read_text() == (
        '# by hand\nagent = "a"  # why\nsession = "s"\n\n[recall]\n# few\nlimit = 7\n'
    )
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(run.store.glob("*.new")) == []
    assert run("config", "set", "agent", "b", "--json", code=0).json == {
        "key": "agent",
        "value": "b",
        "path": str(path),
    }
    run("config", "unset", "recall.limit", code=0)
    assert run("config", "get", "recall.limit").out == "10\n"
    assert "does not set" in run("config", "unset", "recall.limit", code=1).err


def test_set_for_the_user(run: Runner) -> None:
    run("config", "set", "--user", "context.budget", "99", code=0)
    assert value(run, "context.budget") == (99, str(user_file(run)))
    assert run("config", "path", "--user", code=0).out == f"{user_file(run)}\n"
    assert run("config", "path", code=0).out == f"{run.store}/config.toml\n"
    assert "no store" in run("config", "set", "context.budget", "1", code=5).err


def test_a_linked_file_stays_a_link(run: Runner) -> None:
    real = run.home / "dotfiles.toml"
    real.write_text("# mine\n")
    user_file(run).parent.mkdir(parents=True)
    user_file(run).symlink_to(real)
    run("config", "set", "--user", "agent", "a", code=0)
    assert user_file(run).is_symlink() and real.read_text() == '# mine\nagent = "a"\n'


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("recall.limit", "-1"),
        ("recall.limit", "many"),
        ("recall.limit", "0"),
        ("recall.limit", "99999999999999999999"),
        ("tiers.short_days", "0"),
        ("json", "perhaps"),
        ("recall.mode", "magic"),
        ("session", "  "),
        ("session", "a\tb"),
        ("no.such", "1"),
        ("store", "/elsewhere"),
    ],
)
def test_a_value_that_does_not_fit_changes_nothing(run: Runner, key: str, text: str) -> None:
    run("init", code=0)
    done = run("config", "set", "--", key, text, code=2)
    assert key in done.err
    assert not (run.store / "config.toml").exists()


def test_a_setting_of_hits_is_bounded_as_the_option_is() -> None:
    assert (BY_KEY["recall.limit"].least, BY_KEY["recall.limit"].most) == (1, MAX_LIMIT)


def test_what_the_environment_sets_is_said_to_stand_above(run: Runner) -> None:
    run("init", code=0)
    done = run("config", "set", "agent", "x", env={"REMEM_AGENT": "y"}, code=0)
    assert "$REMEM_AGENT" in done.err
    assert run("config", "set", "session", "x", code=0).err == ""


KEYS = [s for s in SETTINGS if s.key != "store"]


@given(
    wanted=st.dictionaries(
        st.sampled_from(KEYS).map(lambda s: s.key),
        st.integers(0, 10**6) | st.booleans() | st.text(max_size=20),
        max_size=8,
    ),
    user=st.booleans(),
)
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, wanted: dict[str, object], user: bool
) -> None:
    path = tmp_path_factory.mktemp("config") / "config.toml"
    if user:
        path.write_text('# hand\nstore = "/somewhere"  # there\n')
    kept = {}
    for setting in KEYS:
        found = wanted.get(setting.key)
        kind = str if setting.default is None else type(setting.default)
        if type(found) is not kind or setting.choices or (kind is str and "\0" in str(found)):
            continue
        if kind is int and isinstance(found, int) and not setting.least <= found <= setting.most:
            continue
        assert isinstance(found, (str, int, bool))
        _rewrite(str(path), setting.key, found)
        kept[setting.key] = found
    expected = {"store": "/somewhere", **kept} if user else kept
    assert read_file(str(path)) == expected
    for key in kept:
        assert _rewrite(str(path), key, None)
        assert key not in read_file(str(path))


# -- files that are broken ----------------------------------------------------------------------


def test_a_file_that_does_not_parse_names_the_line(filled: Runner) -> None:
    (filled.store / "config.toml").write_text('agent = "a"\nrecall.limit = = 3\n')
    for words in (["log"], ["config", "list"], ["add", "x"], ["status"]):
        done = filled(*words, code=2)
        assert "config.toml" in done.err and "line 2" in done.err and done.out == ""
    assert filled("config", "path", code=0).out == f"{filled.store}/config.toml\n"
    assert "line 2" in filled("config", "set", "agent", "b", code=2).err


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("no_such = 1\n", "no_such"),
        ("[recall]\nlimits = 1\n", "recall.limits"),
        ('[recall]\nlimit = "three"\n', "recall.limit"),
        ('json = "perhaps"\n', "json"),
        ('recall.mode = "magic"\n', "recall.mode"),
    ],
)
def test_what_is_not_known_is_named_and_never_ignored(
    filled: Runner, text: str, named: str
) -> None:
    write_user(filled, text)
    done = filled("log", "-n", "1", code=2)
    assert f"'{named}'" in done.err and str(user_file(filled)) in done.err
    key = named if "limits" in named or "no_such" in named else None
    if key:
        filled("config", "unset", "--user", key, code=0)
        filled("log", code=0)


def test_a_wrong_environment_variable_is_named(filled: Runner) -> None:
    done = filled("log", env={"REMEM_JSON": "perhaps"}, code=2)
    assert "$REMEM_JSON" in done.err


# -- output -------------------------------------------------------------------------------------


def test_quiet_says_results_only(run: Runner) -> None:
    assert "made the store" in run("add", "x").err
    other = {"REMEM_STORE": str(run.home / "other")}
    assert run("-q", "add", "x", env=other).err == ""
    assert run("add", "y", env={**other, "REMEM_QUIET": "1"}).err == ""

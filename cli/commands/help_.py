"""remem help: the manual page of a command or of a topic.

On a terminal the page goes to man(1).  Otherwise it is printed as plain text: by mandoc(1) or
man(1) where they are there, else by a small reading of the page itself.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

from remem.cli import table
from remem.cli.plain import visible
from remem.objects.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.cli.context import Context

WIDTH = 80
_OVERSTRIKE = re.compile(".\b")
_CLOSING = frozenset(",.;:)|")
_LIST_ENDS = {"Bl", "El", "Bd", "Ed", "Os", "Dd", "Dt", "Sm", "ns"}
_QUOTES = {"Ql": "'{}'", "Dq": '"{}"', "Sq": "'{}'", "Pq": "({})", "Op": "[{}]", "Aq": "<{}>"}
_CALLABLE = frozenset(
    "Ar Cm Fl Nm Pa Ev Va Xr Sx Em Sy Li Ic Ql Dq Sq Pq Op Aq Ns No Ap Lk".split()
)


def run(context: Context, *, command: str | None) -> int:
    """Show the page of a command or topic; without one, that of remem itself."""
    name = command or "remem"
    path = find_page(name)
    if path is None:
        if table.find(name) is not None:
            return _usage(context, name)
        raise NotFound(
            f"the manual has no page '{name}'", hint="'remem help' shows the commands and topics"
        )
    if not context.json and sys.stdout.isatty() and _shown_by_man(path):
        return 0
    text = page_text(path)
    if context.json:
        context.emit({"page": os.path.basename(path), "text": text})
    else:
        context.out(visible(text).rstrip("\n"))
    return 0


def _usage(context: Context, name: str) -> int:
    """What --help prints, for a command whose page is not installed."""
    from remem.cli.app import run_full

    if not context.json:
        return run_full([name, "--help"])
    import contextlib
    import io

    with contextlib.redirect_stdout(io.StringIO()) as out:
        code = run_full([name, "--help"])
    context.emit({"page": None, "text": out.getvalue()})
    return code


# -- finding ------------------------------------------------------------------------------------


def folders() -> list[str]:
    """Where pages may lie: the checkout, the environment of this Python, the user's own."""
    package = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    found = [os.path.join(os.path.dirname(package), "man")]
    found.append(os.path.join(sys.prefix, "share", "man"))
    import site

    base = site.getuserbase()
    if base:
        found.append(os.path.join(base, "share", "man"))
    return found


def find_page(name: str) -> str | None:
    """Path of a page: "add", "remem-add", "store", "remem", "model", or None.

    The sections are looked through as 1, 5, 7; "model" is the page of remem in the last.
    """
    name, sections = ("remem", ("7",)) if name == "model" else (name, ("1", "5", "7"))
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        return None
    names = [name] if name.startswith("remem") else [f"remem-{name}", name]
    for folder in folders():
        for section in sections:
            for wanted in names:
                path = os.path.join(folder, f"man{section}", f"{wanted}.{section}")
                if wanted.startswith("remem") and os.path.isfile(path):
                    return path
    return None


# -- showing ------------------------------------------------------------------------------------


def _shown_by_man(path: str) -> bool:
    try:
        return subprocess.run(["man", path], check=False).returncode == 0
    except OSError:
        return False


def page_text(path: str) -> str:
    """A page as plain text."""
    environment = dict(os.environ, MANWIDTH=str(WIDTH), MANPAGER="cat", MAN_KEEP_FORMATTING="")
    environment.pop("MAN_KEEP_FORMATTING")
    for words in (["mandoc", "-T", "utf8", "-O", f"width={WIDTH}", path], ["man", path]):
        try:
            done = subprocess.run(words, capture_output=True, check=False, env=environment)
        except OSError:
            continue
        text = done.stdout.decode("utf-8", "replace")
        if done.returncode == 0 and text.strip():
            return _OVERSTRIKE.sub("", text)
    with open(path, encoding="utf-8") as file:
        return "\n".join(read_mdoc(file.read())) + "\n"


def read_mdoc(source: str) -> Iterator[str]:
    """The lines of an mdoc(7) page without its macros: readable, not beautiful."""
    import textwrap

    paragraph: list[str] = []
    name = section = ""
    indent = "     "
    literal = False

    def flush() -> Iterator[str]:
        if paragraph:
            words = " ".join(paragraph)
            yield from textwrap.wrap(
                words, WIDTH - 2, initial_indent=indent, subsequent_indent=indent
            )
            paragraph.clear()

    for line in source.split("\n"):
        if line.startswith('.\\"'):
            continue
        if not line.startswith("."):
            if literal:
                yield indent + _unescaped(line)
            elif line.strip():
                paragraph.append(_unescaped(line))
            continue
        macro, _, rest = line[1:].partition(" ")
        if macro in ("Sh", "Ss"):
            yield from flush()
            section = rest
            yield ""
            yield ("" if macro == "Sh" else "  ") + _unescaped(rest)
        elif macro == "It":
            yield from flush()
            yield ""
            yield "  " + _inline(rest, name)
        elif macro == "Nd":
            paragraph.append(f"- {_unescaped(rest)}")
        elif macro in ("Bd", "Ed"):
            yield from flush()
            literal = macro == "Bd"
        elif macro == "Pp":
            yield from flush()
            yield ""
        elif macro == "Nm":
            name = rest.split(" ")[0] if rest and not name else name
            if section == "SYNOPSIS":
                yield from flush()
            paragraph.append(_inline(f"Nm {rest}", name))
        elif macro not in _LIST_ENDS:
            paragraph.append(_inline(f"{macro} {rest}", name))
    yield from flush()


def _inline(text: str, name: str) -> str:
    """The words of one macro line, with the marks of its macros put in."""
    found = re.findall(r'"([^"]*)"|(\S+)', text)
    tokens = [quoted or plain for quoted, plain in found]
    tail = ""
    while tokens and tokens[-1] in _CLOSING:
        tail = tokens.pop() + tail
    out: list[str] = []
    wrap: list[tuple[int, str]] = []
    macro, join = "", False
    for number, token in enumerate(tokens):
        if token in _CALLABLE:
            following = tokens[number + 1] if number + 1 < len(tokens) else ""
            if token == "Nm" and (not following or following in _CALLABLE):
                out.append(name)
            elif token in _QUOTES:
                wrap.append((len(out), token))
            join = token == "Ns" or join
            macro = token
            continue
        if token in _CLOSING and token != "|":
            join, word = True, token
        elif macro == "Fl" and token != "|":
            word = "-" + token
        elif macro == "Xr" and token.isdigit():
            join, word = True, f"({token})"
        else:
            word = _unescaped(token)
        if join and out:
            out[-1] += word
        else:
            out.append(word)
        join = False
    for start, quote in reversed(wrap):
        out[start:] = [_QUOTES[quote].format(" ".join(out[start:]))]
    return " ".join(out) + tail


def _unescaped(text: str) -> str:
    """Text without the escapes of roff."""
    text = text.replace("\\&", "").replace("\\e", "\\").replace("\\-", "-")
    return re.sub(r"\\\(..|\\\[[^]]*\]", "", text)

"""Which project a folder belongs to: the default collection.

A setting in the repository's own git configuration (``remem.collection``), else the address of the
remote ``origin``, else the root path; ``home`` outside a repository.  Worktrees of a repository
share its configuration and so its collection.  The files are read directly: starting git would cost
more than the rest of a command.
"""

from __future__ import annotations

import os
import re

from blake3 import blake3

from remem.objects.scope import DEFAULT_COLLECTION, MAX_NAME_B

_SCP = re.compile(r"(?:[^@/\s]+@)?([^:/\s]+):(?!//)(.*)")
_URL = re.compile(r"[a-z][a-z0-9+.-]*://(?:[^/]*@)?([^/]*)(/.*)?", re.IGNORECASE)
_PORTS = ("22", "80", "443", "9418")
_SECTION = re.compile(r'^\s*\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')


def collection_of(folder: str) -> tuple[str, str]:
    """The default collection of a folder and what it was taken from.

    Returns:
        (name, origin) with origin one of "git config", "git remote", "git root", "default".
    """
    root = find_root(folder)
    if root is None:
        return DEFAULT_COLLECTION, "default"
    top, common = root
    settings = _read_config(os.path.join(common, "config"))
    named = settings.get("remem.collection", "").strip()
    if named:
        return _bounded(named), "git config"
    remote = settings.get("remote.origin.url", "").strip()
    if remote:
        return _bounded(normalise_url(remote)), "git remote"
    return _bounded(_main_root(top, common)), "git root"


def find_root(folder: str) -> tuple[str, str] | None:
    """Top of the work tree and the common git folder, or None outside a repository."""
    here = os.path.realpath(folder)
    while True:
        found = git_folders(here)
        if found is not None:
            return here, found[1]
        if _is_bare(here):
            return here, here
        parent = os.path.dirname(here)
        if parent == here:
            return None
        here = parent


def git_folders(top: str) -> tuple[str, str] | None:
    """The git folder of the work tree with this top, and the common one; None where it is none.

    They differ in a linked worktree, whose ``.git`` is a file, as a submodule's is.
    """
    dot = os.path.join(top, ".git")
    if os.path.isdir(dot):
        return dot, dot
    if not os.path.isfile(dot):
        return None
    line = _first_line(dot)
    if not line.startswith("gitdir:"):
        return None
    git = os.path.normpath(os.path.join(top, line[len("gitdir:") :].strip()))
    common = _first_line(os.path.join(git, "commondir"))
    return git, os.path.normpath(os.path.join(git, common)) if common else git


def _is_bare(folder: str) -> bool:
    return all(
        os.path.exists(os.path.join(folder, name)) for name in ("HEAD", "objects", "refs", "config")
    )


def _main_root(top: str, common: str) -> str:
    """Root path of the repository: that of its main work tree, for all its worktrees."""
    if os.path.basename(common) == ".git":
        return os.path.dirname(common)
    return top if "/modules/" in common.replace(os.sep, "/") else common


def normalise_url(url: str, base: str = "") -> str:
    """Bring the URLs that mean one repository to one form, without user name and password.

    Args:
        url: as configured: "https://…", "git@host:path", "ssh://…", "file://…" or a path.
        base: folder that a relative path is relative to.

    Returns:
        For example "github.com/pallets/click", or an absolute path.
    """
    full = _URL.fullmatch(url)
    if full is not None and not url.lower().startswith("file:"):
        host, path = full[1], full[2] or ""
    elif full is None and (scp := _SCP.fullmatch(url)) is not None:
        host, path = scp[1], "/" + scp[2]
    else:
        local = full[2] or "/" if full is not None else url
        return os.path.normpath(os.path.join(os.path.abspath(base or "."), local))
    name, _, port = host.partition(":")
    host = name.lower() if port in ("", *_PORTS) else f"{name.lower()}:{port}"
    return f"{host}/{path.strip('/').removesuffix('.git')}".rstrip("/")


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline(4096).strip()
    except OSError:
        return ""


def _read_config(path: str) -> dict[str, str]:
    """Last value of each setting of a git configuration file, keys in lower case."""
    found: dict[str, str] = {}
    section = ""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.readlines()
    except OSError:
        return found
    for line in lines:
        head = _SECTION.match(line)
        if head:
            name, sub = head.group(1).lower(), head.group(2)
            section = name if sub is None else f"{name}.{sub}"
            continue
        key, sign, value = line.strip().partition("=")
        if section and sign and not key.startswith(("#", ";")):
            found[f"{section}.{key.strip().lower()}"] = _value(value)
    return found


def _value(text: str) -> str:
    """A value without its comment and its quotes."""
    out: list[str] = []
    quoted = escaped = False
    for char in text.strip():
        if escaped:
            out.append({"n": "\n", "t": "\t", "b": "\b"}.get(char, char))
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == '"':
            quoted = not quoted
        elif char in "#;" and not quoted:
            break
        else:
            out.append(char)
    return "".join(out).strip()


def _bounded(name: str) -> str:
    """A name as a scope takes it: a long one keeps its end and a digest of the whole."""
    data = name.encode("utf-8", "replace")
    if len(data) <= MAX_NAME_B:
        return name
    digest = blake3(data).hexdigest(16)
    return data[len(digest) + 1 - MAX_NAME_B :].decode("utf-8", "ignore") + "~" + digest

"""The script that a shell sources, with the store and the shapes of secrets filled in.

The shapes are POSIX extended expressions that PCRE reads alike, over bytes.  They are the first of
two sieves: what they catch never reaches the disk; what they miss the admission gate still finds
before the store keeps it.  The first group of a shape stays; what a shape that ends in "@" matched
last stays too; all else of the match is replaced.
"""

from __future__ import annotations

import os
import shlex

SHELLS = ("bash", "zsh", "fish")

_VALUE = r"""('[^']+'|\$'[^']+'|"[^"$][^"]*"|[^][:space:]"'$<>{}()[;&|=-][^[:space:]"';&|)]*)"""
# What may as well be a word of a sentence must have a digit or a sign in it.
_STRONG = r"""[^][:space:]"'$<>{}()[;&|/:=-][^[:space:]"';&|]*[0-9!@#%^*+=?~][^[:space:]"';&|)]*"""
_GAP = r"[\\[:space:]]+"  # a line may go on behind a backslash


def _any_case(text: str) -> str:
    """An expression for a text in any letter case."""
    return "".join(f"[{c.upper()}{c}]" if c.isalpha() else c for c in text)


_WORD = (
    f"({_any_case('token')}|(^|[^A-Za-z]){_any_case('pass')}|{_any_case('pass')}"
    f"({_any_case('w')}({_any_case('or')})?{_any_case('d')}|{_any_case('phrase')})"
    f"|{_any_case('secret')}([_-]?({_any_case('key')}|[Ii][Dd]))?"
    f"|({'|'.join(map(_any_case, ('api', 'access', 'private', 'encryption', 'signing')))})"
    f"[_-]?{_any_case('key')}|{_any_case('credential')}[Ss]?|_{_any_case('pwd')}"
    f"|{_any_case('ssh')}{_any_case('pass')}|{_any_case('db')}{_any_case('pass')})"
)
_ARGUMENTS = "([^|;&]*[[:space:]])?"
# What a command must hold to be looked at: one of these, or the first and then the second of a
# pair; with True in any letter case.
HINTS: tuple[tuple[str, str, bool], ...] = (
    *((text, "", False) for text in ("AKIA", "ASIA", "ABIA", "ACCA", "ghp_", "gho_", "ghu_")),
    *((text, "", False) for text in ("ghs_", "ghr_", "github_pat_", "glpat-", "xox", "xapp-")),
    *((text, "", False) for text in ("sk-", "sk_", "rk-", "rk_", "eyJ", "AIza", "npm_", "hf_")),
    *((text, "", False) for text in ("pypi-", "AGE-SEC", "dop_v1", "SG.", "hvs.", "hvb.", "HRKU-")),
    *((text, "", False) for text in ("-----BEGIN", "ookie:", "asic ", "hooks.slack", "/webhooks/")),
    *((text, "", True) for text in ("bearer", "author", "token", "pass", "secr", "key", "cred")),
    *((text, "", True) for text in ("_pwd", "sig=", "signature=")),
    ("://", "@", False),
    ("redis-cli", "-a", False),
    ("<<<", "", False),
    *((text, "-", False) for text in ("mysql", "mariadb", "mycli", "mongo", "login", "curl")),
    *((text, "-", False) for text in ("openssl", "smbclient", "ldap", "sudo")),
    *((text, "-P", False) for text in ("zip", "unzip")),
    ("7z", "-p", False),
    ("rabbitmqctl", "", False),
)
MAYBE = "|".join(
    (_any_case(first) if folded else first).replace(".", "[.]") + (f".*{second}" if second else "")
    for first, second, folded in HINTS
)
PEM = "-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----"
SHAPES = (
    ("key", "(^|[^A-Za-z0-9])(AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}"),
    (
        "token",
        "()(gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|glpat-[A-Za-z0-9_-]{16,}"
        "|xox[a-z]-[A-Za-z0-9-]{8,}|xapp-[A-Za-z0-9-]{8,}|npm_[A-Za-z0-9]{30,}"
        "|pypi-AgE[A-Za-z0-9_-]{20,}|AGE-SECRET-KEY-1[0-9A-Z]{20,}|dop_v1_[a-f0-9]{32,}"
        "|AIza[0-9A-Za-z_-]{30,}|hv[sb][.][A-Za-z0-9_-]{20,}|HRKU-[A-Za-z0-9_-]{20,})",
    ),
    ("token", "(hooks[.]slack[.]com/(services|workflows)/)[A-Za-z0-9/_-]{16,}"),
    ("token", "(/webhooks/[0-9]+/)[A-Za-z0-9_-]{16,}"),
    (
        "token",
        r"(^|[^A-Za-z0-9_-])([sr]k[-_][A-Za-z0-9_-]{16,}|hf_[A-Za-z0-9]{20,}"
        r"|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"
        r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)",
    ),
    ("token", f"({_any_case('bearer')}[[:space:]]+)[A-Za-z0-9._~+/=-]{{6,}}"),
    ("token", "([Bb]asic[[:space:]]+)[A-Za-z0-9+/]{12,}=*"),
    ("token", "([Cc]ookie:[[:space:]]*)[^\"'[:space:]][^\"']*"),
    ("token", f"([?&]({_any_case('sig')}|[A-Za-z-]*{_any_case('signature')})=)[^[:space:]&\"']+"),
    ("token", "([Aa]uthorization:[[:space:]]*[A-Za-z]+[[:space:]]+)[A-Za-z0-9._~+/=:-]{6,}"),
    (
        "password",
        """(://[^][:space:]/:@"']*:)[^][:space:]/@$"'][^][:space:]/@"']*@""",
    ),
    ("password", f"({_WORD}[0-9]*=([\\\\][[:cntrl:]])*){_VALUE}"),
    ("password", f"({_WORD}[\"']?[[:space:]]+=[[:space:]]+){_VALUE}"),
    ("password", f"({_WORD}[A-Za-z_-]*[\"']?:[[:space:]]*[\"']?){_STRONG}"),
    ("password", f"({_WORD}[[:space:]]*<<<[[:space:]]*){_VALUE}"),
    (
        "password",  # of fish and csh
        f"((^|[;&|[:space:]])set(env)?[[:space:]]+(-[A-Za-z-]+[[:space:]]+)*[A-Za-z0-9_]*{_WORD}"
        f"[0-9]*[[:space:]]+){_VALUE}",
    ),
    (
        "password",
        "((secret_?access_?key|access_?key|secret_?key|auth_?[Tt]oken|api_?key"
        f"|(^|[[:space:].])password)[[:space:]]+){_STRONG}",
    ),
    ("password", f'("[A-Za-z0-9_.-]*{_WORD}"[[:space:]]*:[[:space:]]*")[^"$][^"]*'),
    (
        "password",
        "((^|[[:space:]])--?[a-z-]*(password|passwd|pass|passphrase|token|secret|api-?key|access-key"
        f"|secret-key|secret-id){_GAP}){_VALUE}",
    ),
    (
        "password",
        f'((mysql[a-z]*|mariadb[a-z-]*|mycli)[[:space:]]{_ARGUMENTS}-p)[^[:space:]"$-][^[:space:]]*',
    ),
    ("password", f"(sshpass[[:space:]]+-p[[:space:]]*){_VALUE}"),
    ("password", f"([[:space:]]login[[:space:]]{_ARGUMENTS}-p[[:space:]]+){_VALUE}"),
    ("password", f"(mongo[a-z]*[[:space:]]{_ARGUMENTS}-p[[:space:]]*){_VALUE}"),
    ("password", f"(redis-cli[[:space:]]{_ARGUMENTS}-a[[:space:]]+){_VALUE}"),
    ("password", f"(openssl[[:space:]]{_ARGUMENTS}(-k|-K)[[:space:]]+){_VALUE}"),
    ("password", """(openssl[[:space:]][^|;&]*[[:space:]"']pass:)[^[:space:]"']+"""),
    ("password", f"(zip[[:space:]]{_ARGUMENTS}-P[[:space:]]*){_VALUE}"),
    ("password", """(7z[a-z]*[[:space:]][^|;&]*[[:space:]]-p)[^[:space:]"'$-][^[:space:]]*"""),
    (
        "password",
        """(smbclient[[:space:]][^|;&]*-U[[:space:]]*['"]?[^%[:space:]]+%)[^[:space:]"']+""",
    ),
    ("password", f"(ldap[a-z]+[[:space:]]{_ARGUMENTS}-w[[:space:]]*){_VALUE}"),
    ("password", f"(ssh-keygen[[:space:]]{_ARGUMENTS}(-N|-P)[[:space:]]*){_VALUE}"),
    (
        "password",
        "(htpasswd[[:space:]]+-[a-zA-Z]*b[a-zA-Z]*[[:space:]]+([^[:space:]]+[[:space:]]+){2})"
        f"{_VALUE}",
    ),
    ("password", f"(wpa_passphrase[[:space:]]+[^[:space:]]+[[:space:]]+){_VALUE}"),
    (
        "password",
        f"(rabbitmqctl[[:space:]]+(add_user|change_password)[[:space:]]+[^[:space:]]+[[:space:]]+)"
        f"{_VALUE}",
    ),
    ("password", f"((sudo|login|passwd)[^|;&]*<<<[[:space:]]*){_VALUE}"),
    (
        "password",  # what is handed to a program that asks for it
        f"((^|[;&|[:space:]])(echo|printf)[[:space:]]+(-[a-zA-Z]+[[:space:]]+)*){_VALUE}"
        r"[[:space:]]*(\\n)?[[:space:]]*[|][[:space:]]*(sudo|chpasswd|passwd|[a-z]+[[:space:]]+login)",
    ),
    (
        "password",
        f"(curl[[:space:]]{_ARGUMENTS}(-u|-U|--user|--proxy-user)[[:space:]=]*[\"']?"
        """[^][:space:]:"']+:)[^][:space:]"'$][^][:space:]"']*""",
    ),
)


def script(shell: str, store: str) -> str:
    """The hook of a shell.

    Args:
        shell: one of SHELLS.
        store: folder of the store to whose spool it appends, absolute.
    """
    path = os.path.join(os.path.dirname(__file__), f"remem.{shell}")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    quote = _fish_quote if shell == "fish" else shlex.quote
    shapes = "\n".join(f"  {quote(f'{kind}:{shape}')}" for kind, shape in SHAPES)
    if shell == "fish":
        shapes = shapes.replace("\n", " \\\n")
    for name, value in (
        ("@STORE@", quote(store)),
        ("@MAYBE@", quote(MAYBE)),
        ("@HINTS@", _globs()),
        ("@PEM@", quote(PEM)),
        ("@SHAPES@", shapes),
    ):
        text = text.replace(name, value)
    return text


def _fish_quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _globs() -> str:
    """The hints as patterns of a shell's case: a glob is faster than an expression."""
    return "|".join(
        "*" + "*".join([_glob(first, folded), *([_glob(second, folded)] if second else [])]) + "*"
        for first, second, folded in HINTS
    )


def _glob(text: str, folded: bool) -> str:
    return "".join(
        f"[{c.upper()}{c}]" if folded and c.isalpha() else c if c.isalnum() else f"\\{c}"
        for c in text
    )

"""Secrets in command lines: what programs take as a password, told by a table.

A rule of `remem.objects.secret_rules` finds what names itself: ``--password x``, ``token=x``.  What
this module finds does not: ``ldapsearch -w x``, ``mc alias set NAME URL KEY x``, ``echo x | sudo
-S``.  It can be told only by the program whose words they are, and from the place of a word among
them; so a line is split into words as a shell does it, and each row of the table says where one
program takes a secret.  The same letter of another program (``patch -p1``, ``grep -x``) says
nothing.

Source: the manual of each program.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    Span = tuple[int, int]
    # programs, words that have to come first (of several: one), how, what
    Row = tuple[str, str, str, str]

MAX_LINE = 2000  # code points of a command line that are looked at
MAX_WITHIN = 3  # programs that are named within one line, and looked at
_SHORTEST = 3  # code points of a value

# How a program takes a secret, and what the last field of a row then names:
VALUE = "value"  # options: the word behind, or what stands behind "="; "-p*": or what is glued to
# it; "-p+": or it is the last of several letters behind one sign
GLUED = "glued"  # options: what is glued to it, and never the word behind
PAIR = "pair"  # options and a sign: their value is a name, the sign and the secret
KEYED = "keyed"  # options: their value is a key, "=" and the secret
LISTED = "listed"  # options: their value is a list of such, with commas; only keys that tell
PLACE = "place"  # the number of a word that is no option, and options that take a value
STRONG = "strong"  # likewise, but plain words are none: the program has the name of a word
AFTER = "after"  # words: the word behind one
ASSIGNED = "assigned"  # every word KEY=SECRET
SLASHED = "slashed"  # options of Windows: what stands behind "/p:", or the word behind "/rp"

_LDAP = "ldapsearch ldapadd ldapmodify ldapdelete ldapmodrdn ldapcompare ldapwhoami ldapexop"
_MONGO = "mongo mongosh mongodump mongorestore mongoexport mongoimport mongostat mongotop"
_SNMP = "snmpget snmpgetnext snmpwalk snmpset snmpbulkget snmpbulkwalk snmptable snmptrap"
_SAMBA = "smbclient rpcclient smbget smbcacls smbcquotas smbtree winexe"
_IMPACKET = "psexec smbexec wmiexec atexec dcomexec secretsdump mssqlclient lookupsid"

TABLE: tuple[Row, ...] = (
    ("docker podman nerdctl buildah skopeo helm az oc cf", "login", VALUE, "-p*"),
    ("redis-cli valkey-cli keydb-cli", "", VALUE, "-a*"),
    ("redis-cli valkey-cli keydb-cli", "", AFTER, "AUTH auth"),
    (_LDAP, "", VALUE, "-w*+"),
    ("ldappasswd", "", VALUE, "-w*+ -s* -a*"),
    (_MONGO, "", VALUE, "-p*"),
    ("cqlsh twine rabbitmqadmin rdesktop evil-winrm crackmapexec netexec nxc", "", VALUE, "-p"),
    ("ncftp ncftpput ncftpget psexec psexec64 hydra smbmap bloodhound-python", "", VALUE, "-p"),
    ("sqlcmd osql bcp isql zip unzip zipcloak ipmitool", "", VALUE, "-P+"),
    ("mosquitto_pub mosquitto_sub", "", VALUE, "-P --pw"),
    ("sshpass", "", VALUE, "-p*"),
    ("ssh-keygen", "", VALUE, "-N -P"),
    ("openssl", "enc", VALUE, "-k -K"),
    ("keytool jarsigner", "", VALUE, "-storepass -keypass -srcstorepass -deststorepass -new"),
    ("plink pscp psftp putty", "", VALUE, "-pw"),
    ("useradd usermod", "", VALUE, "-p"),
    (_SNMP, "", VALUE, "-A -X"),
    ("gh", "secret set", VALUE, "-b --body"),
    ("doctl", "auth", VALUE, "-t"),
    ("curl", "", VALUE, "--oauth2-bearer"),
    ("mysql mysqldump mysqladmin mysqlimport mysqlshow mysqlcheck mycli", "", GLUED, "-p"),
    ("mariadb mariadb-dump mariadb-admin mysqlbinlog mysqlslap mysqlpump", "", GLUED, "-p"),
    ("7z 7za 7zr 7zz rar unrar", "", GLUED, "-p -hp"),
    ("curl", "", PAIR, "-u+ -U+ --user --proxy-user :"),
    ("curl", "", PAIR, "-E --cert :"),
    ("curl", "", PAIR, "-b+ --cookie ="),
    ("http https xh xhs", "", PAIR, "-a --auth :"),
    (_SAMBA, "", PAIR, "-U --user %"),
    ("lftp open", "", PAIR, "-u --user ,"),
    ("kubectl oc k3s", "create secret", KEYED, "--from-literal"),
    ("mount mount.cifs mount_smbfs sshfs", "", LISTED, "-o"),
    ("mc mcli", "alias set|config host add", PLACE, "3 --api --path"),
    ("mc mcli", "admin user add", PLACE, "2"),
    ("mysqladmin mariadb-admin", "password", PLACE, "0"),
    ("rabbitmqctl", "add_user|change_password|authenticate_user", PLACE, "1 -n -p"),
    ("wpa_passphrase", "", PLACE, "1"),
    ("smbclient", "", PLACE, "1 -U --user -c -W -I -p -m -A -s -d -n -t -T -D -O -l -i -R"),
    ("vault", "login", STRONG, "0 -method -path"),
    ("net", "user", STRONG, "1"),
    ("nmcli", "", AFTER, "password wifi-sec.psk 802-11-wireless-security.psk 802-1x.password"),
    ("sc", "config|create", AFTER, "password="),
    ("aws", "configure set", AFTER, "aws_secret_access_key aws_session_token"),
    ("vault", "kv put|kv patch", ASSIGNED, ""),
    ("fly flyctl", "secrets set", ASSIGNED, ""),
    ("xfreerdp xfreerdp3 wfreerdp cmdkey wmic mstsc net runas", "", SLASHED, "p pass password"),
    ("schtasks", "", SLASHED, "rp p"),
)
# Programs that log on as NAME/SECRET@PLACE, or as [DOMAIN/]NAME:SECRET@HOST.
_LOGONS = {"sqlplus": "/", "sqlldr": "/", "expdp": "/", "impdp": "/", "rman": "/"}
_LOGONS |= {f"{name}.py": ":" for name in _IMPACKET.split()}
_LOGONS |= {f"impacket-{name}": ":" for name in _IMPACKET.split()}

# What reads a secret from its standard input: a program, and a word that has to be among its own.
READERS: tuple[tuple[str, str], ...] = (
    ("sudo", r"-[A-Za-z]*S[A-Za-z]*|--stdin"),
    ("docker podman nerdctl helm skopeo buildah", "--password-stdin"),
    ("gh", "--with-token|secret"),
    ("passwd", r"--stdin|[a-z_][\w-]*"),
    ("cryptsetup", r"luks\w+|open|create"),
    ("kinit", r"[\w./@-]+"),
    ("vncpasswd", "-f"),
    ("smbpasswd", r"-[a-z]*s[a-z]*"),
    ("gpg gpg2", "--passphrase-fd"),
    ("openssl", r"stdin|fd:0"),
    ("htpasswd", r"-[A-Za-z]*i[A-Za-z]*"),
    ("chpasswd", ""),
    ("pass", "insert"),
    ("secret-tool", "store"),
    ("wrangler", "secret"),
    ("vault", "login"),
)
_PAIRS_OF = frozenset(("chpasswd",))  # these read NAME:SECRET

_WINDOWS = frozenset(
    "net xfreerdp xfreerdp3 wfreerdp cmdkey wmic mstsc runas schtasks sc plink pscp psftp putty"
    " psexec psexec64 sqlcmd osql bcp".split()
)
_HOST = ("//", "\\\\")  # how the name of a share begins
_SAYS = "echo|printf"


@cache
def _rows() -> dict[str, list[tuple[tuple[tuple[str, ...], ...], str, tuple[str, ...]]]]:
    """Program -> (words that come first, how, what)."""
    found: dict[str, list[tuple[tuple[tuple[str, ...], ...], str, tuple[str, ...]]]] = {}
    for programs, first, how, what in TABLE:
        ways = tuple(tuple(way.split()) for way in first.split("|"))
        for program in programs.split():
            found.setdefault(program, []).append((ways, how, tuple(what.split())))
    for program in ("htpasswd", "set", "setenv", "npm", "yarn", "pnpm", *_LOGONS):
        found.setdefault(program, [])
    return found


@cache
def _program() -> re.Pattern[str]:
    names = sorted(_rows(), key=len, reverse=True)
    words = "|".join(map(re.escape, names))
    return re.compile(rf"(?<![\w.$%@=+-])(?:{words})(?:\.exe)?(?=[ \t])", re.IGNORECASE)


@cache
def _names() -> frozenset[bytes]:
    readers = {name for programs, _ in READERS for name in programs.split()}
    windows = {f"{name}.exe" for name in _rows()}
    return frozenset(name.encode() for name in {*_rows(), *readers, *windows})


# What may stand beside the name of a program, but for what stands in its name.
_ENDS = bytes(32 if chr(byte) in "\t\r\n;|&()`\"'/\\{}[]!#,:*<>~" else byte for byte in range(256))


def possible(text: str) -> bool:
    """Whether a text that looks like a command line holds a secret that this module finds.

    What has neither an option nor one of ``/ | _ @ =`` is taken for prose: it is for other signs of
    a secret to call for a closer look.
    """
    signed = "/" in text or "|" in text or "_" in text or "@" in text or "=" in text
    return (signed or _option().search(text) is not None) and bool(find(text))


@cache
def _option() -> re.Pattern[str]:
    return re.compile(r"\s--?[A-Za-z]")


def find(text: str) -> list[Span]:
    """Places of the secrets that command lines in a text hold."""
    apart = text.encode("utf-8", "surrogatepass").translate(_ENDS).lower().split()
    if _names().isdisjoint(apart):
        return []
    found: list[Span] = []
    end = within = 0
    for match in _program().finditer(text):
        program = match[0][:-4] if match[0].lower().endswith(".exe") else match[0]
        if program not in _rows():
            program = program.lower()
            if program not in _WINDOWS:
                continue  # on other systems letter case tells programs apart
        within = within + 1 if match.start() < end else 0
        if within > MAX_WITHIN:
            continue
        words = _words(text, match.end())
        end = max(end, words[-1].end if words else match.end())
        found += _in_line(program, words)
    for match in _reader().finditer(text):
        found += _read(match)
    return found


# -- words of a line ----------------------------------------------------------------------------


class Word:
    """One word of a command line.

    Attributes:
        start: where it begins, without its quotation marks.
        end: where it ends.
        text: what stands there.
    """

    __slots__ = ("end", "start", "text")

    def __init__(self, start: int, text: str) -> None:
        """Take a word as it stands; marks around all of it are no part of it."""
        if len(text) > 1 and text[0] in "\"'" and text[-1] == text[0]:
            start, text = start + 1, text[1:-1]
        self.start, self.end, self.text = start, start + len(text), text

    def rest(self, at: int) -> Word:
        """What stands behind so many code points."""
        return Word(self.start + at, self.text[at:])


@cache
def _word() -> re.Pattern[str]:
    quoted = r"""\\[^\r\n]|"(?:[^"\\\r\n]|\\.)*"|'[^'\r\n]*'"""
    return re.compile(rf"""(?:[ \t]|\\\r?\n)*(?P<w>(?:{quoted}|[^\s;|&)`"'\\])+)""")


def _words(text: str, at: int) -> list[Word]:
    """The words from a place to the end of a simple command, or to where its output goes."""
    found: list[Word] = []
    stop = min(len(text), at + MAX_LINE)
    while True:
        match = _word().match(text, at, stop)
        if match is None or match["w"].lstrip("0123456789")[:1] in ("<", ">"):
            return found
        if match["w"].startswith("$("):
            return found
        found.append(Word(match.start("w"), match["w"]))
        at = match.end()


def _keeps(word: Word) -> bool:
    """Whether a word may be a secret: not what stands for one, and not where it is kept."""
    from remem.objects.secret_rules import STANDS

    text = word.text
    return len(text) >= _SHORTEST and text[0] not in "-@" and STANDS.match(text) is None


# -- the rows -----------------------------------------------------------------------------------


def _in_line(program: str, words: list[Word]) -> Iterator[Span]:
    texts = [word.text for word in words]
    for ways, how, what in _rows()[program]:
        begin = min((at for way in ways if (at := _behind(texts, way)) is not None), default=None)
        if begin is None:
            continue
        given = words[begin:]
        if how in (PLACE, STRONG):
            if program in _WINDOWS:
                given = [word for word in given if not word.text.startswith("/")]
            elif program == "smbclient" and not any(text[:2] in _HOST for text in texts):
                given = []
            placed = _placed(given, int(what[0]), what[1:])
            chosen = [word for word in placed if how == PLACE or _strong(word)]
        elif how == AFTER:
            chosen = [b for a, b in pairwise(given) if a.text in what]
        elif how == ASSIGNED:
            pairs = [w for w in given if not w.text.startswith("-") and "=" in w.text]
            chosen = [w.rest(w.text.index("=") + 1) for w in pairs]
        elif how == SLASHED:
            chosen = list(_slashed(given, what))
        else:
            chosen = list(_optional(given, how, what))
        for word in chosen:
            if _keeps(word):
                yield word.start, word.end
    if program in _LOGONS:
        yield from _logon(words, _LOGONS[program])
    elif program == "htpasswd":
        yield from _htpasswd(words)
    elif program == "net" and texts[:1] in (["use"], ["USE"]):
        yield from _share(words)
    elif program in ("set", "setenv", "npm", "yarn", "pnpm"):
        yield from _named(program, words)


def _behind(texts: list[str], way: tuple[str, ...]) -> int | None:
    """Where the words behind those that have to come first begin, None where they do not come.

    Options may stand before and between them.
    """
    at = 0
    for wanted in way:
        try:
            at = texts.index(wanted, at) + 1
        except ValueError:
            return None
    return at


def _optional(words: list[Word], how: str, what: tuple[str, ...]) -> Iterator[Word]:
    """Values of options, as far as they are secret."""
    sign = what[-1] if how == PAIR else "="
    options = what[:-1] if how == PAIR else what
    for at, word in enumerate(words):
        value = _value(word, words[at + 1] if at + 1 < len(words) else None, how, options)
        if value is None:
            continue
        if how in (VALUE, GLUED):
            yield value
        elif how == LISTED:
            yield from _listed(value)
        else:
            name, _, secret = value.text.partition(sign)
            if name and secret and "://" not in value.text and not name.startswith(("$", "<")):
                yield value.rest(len(name) + 1)


def _value(word: Word, behind: Word | None, how: str, options: tuple[str, ...]) -> Word | None:
    text = word.text
    for option in options:
        name = option.rstrip("*+")
        glues = how in (GLUED, PAIR) or "*" in option
        if text == name:
            return None if how == GLUED else behind
        short = len(name) == 2
        if text.startswith(name):
            if text[len(name)] == "=" and not (short and how == GLUED):
                return word.rest(len(name) + 1)
            if glues and (short or how == GLUED) and not name.startswith("--"):
                return word.rest(len(name))
        elif "+" in option and text[-1:] == name[1] and text[0] == "-" and text[1:].isalpha():
            return behind
    return None


def _listed(value: Word) -> Iterator[Word]:
    from remem.objects.secret_rules import PASSWORD_NAME

    at = 0
    for item in value.text.split(","):
        key, _, secret = item.partition("=")
        if secret and (PASSWORD_NAME.search(key) or key == "pass"):
            yield Word(value.start + at + len(key) + 1, secret)
        at += len(item) + 1


def _strong(word: Word) -> bool:
    from remem.objects.secret_rules import is_strong

    return is_strong(word.text)


def _placed(words: list[Word], place: int, valued: tuple[str, ...]) -> list[Word]:
    """The word of a number among those that are no options and no values of options."""
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word.text.startswith("-") and len(word.text) > 1:
            skip = word.text in valued
        elif place:
            place -= 1
        else:
            return [word]
    return []


def _slashed(words: list[Word], what: tuple[str, ...]) -> Iterator[Word]:
    for at, word in enumerate(words):
        name, sign, _ = word.text.partition(":")
        if not name.startswith("/") or name[1:].lower() not in what:
            continue
        if sign:
            yield word.rest(len(name) + 1)
        elif "rp" in what and at + 1 < len(words) and not words[at + 1].text.startswith("/"):
            yield words[at + 1]


def _logon(words: list[Word], sign: str) -> Iterator[Span]:
    for word in words:
        if word.text[0:1] in ("-", "/", "@") or "://" in word.text or sign not in word.text:
            continue
        account = word.text[: word.text.rindex("@")] if "@" in word.text else word.text
        if sign == ":" and account is word.text:
            continue  # no host: it is no account
        name, _, secret = account.partition(sign)
        found = Word(word.start + len(name) + 1, secret)
        if name and _keeps(found) and (sign == ":" or "/" not in secret):
            yield found.start, found.end
        return


def _htpasswd(words: list[Word]) -> Iterator[Span]:
    """With the letter b the password is the last word: htpasswd -b FILE NAME PASSWORD."""
    plain = [word for word in words if not word.text.startswith("-")]
    letters = "".join(word.text for word in words if re.fullmatch(r"-[A-Za-z]+", word.text))
    if "b" in letters and len(plain) >= (2 if "n" in letters else 3):
        word = plain[1 if "n" in letters else 2]
        if _keeps(word):
            yield word.start, word.end


def _share(words: list[Word]) -> Iterator[Span]:
    r"""Take a word of ``net use [DEVICE] \\HOST\SHARE [PASSWORD]`` that is none of the others."""
    if not any(word.text.startswith(_HOST) for word in words):
        return
    behind = False
    for word in words[1:]:
        if word.text.startswith(_HOST):
            behind = True
        elif behind and not word.text.startswith("/") and _keeps(word):
            yield word.start, word.end
            return


def _named(program: str, words: list[Word]) -> Iterator[Span]:
    """A name that says that the word behind it is a secret."""
    from remem.objects.secret_rules import PASSWORD_NAME, SECRET_NAME

    if program == "set":  # of fish
        if not words or not re.fullmatch(r"-[a-zA-Z]*x[a-zA-Z]*|--export", words[0].text):
            return
    elif program != "setenv" and [word.text for word in words[:2]] != ["config", "set"]:
        return
    for name, word in pairwise(words):
        told = PASSWORD_NAME.search(name.text) or SECRET_NAME.search(name.text)
        if (told or re.search(r"_auth(?:Token)?$", name.text)) and _keeps(word):
            yield word.start, word.end
            return


# -- what is read from standard input -----------------------------------------------------------


@cache
def _reader() -> re.Pattern[str]:
    programs = "|".join(sorted((n for p, _ in READERS for n in p.split()), key=len, reverse=True))
    said = rf"(?<![\w-])(?:{_SAYS})[ \t]+(?P<said>[^|\r\n]{{1,200}})\|[ \t]*(?:sudo[ \t]+)?"
    line = rf"(?<![\w./-])(?P<{{0}}>{programs})(?=\s|$)(?P<{{1}}>[^|;&\r\n<]{{{{0,400}}}})"
    fed = r"<<<[ \t]*(?P<fed>\"[^\"\r\n]*\"|'[^'\r\n]*'|[^\s;|&]+)"
    return re.compile(said + line.format("a", "b") + "|" + line.format("c", "d") + fed)


def _read(match: re.Match[str]) -> Iterator[Span]:
    program, line = match["a"] or match["c"], match["b"] or match["d"] or ""
    if not _reads(program, line):
        return
    if match["fed"]:
        yield from _given(program, [Word(match.start("fed"), match["fed"])])
        return
    words = _words(match.string, match.start("said"))
    while words and re.fullmatch(r"-[neE]+", words[0].text):
        words = words[1:]
    if match[0].startswith("printf") and len(words) > 1 and "%" in words[0].text:
        words = words[1:]
    yield from _given(program, words)


def _reads(program: str, line: str) -> bool:
    words = line.split()
    for programs, wanted in READERS:
        if program in programs.split():
            pattern = re.compile(wanted)
            return not wanted or any(pattern.fullmatch(word) for word in words)
    return False


def _given(program: str, words: list[Word]) -> Iterator[Span]:
    for word in words:
        if program in _PAIRS_OF:
            name, _, secret = word.text.partition(":")
            word = Word(word.start + len(name) + 1, secret)
        if _keeps(word):
            yield word.start, word.end

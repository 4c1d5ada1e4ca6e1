"""Forms that are instruction-like wherever they stand, and signs of dangerous advice.

Each form names words without which it does not stand in a text, so that its pattern runs nowhere
else.  Compiled on first use: only text that comes from tools or strangers is looked at.
"""

from __future__ import annotations

import re
from functools import cache

import msgspec

from remem.objects.instruction_agents import CREDENTIAL_FILES, IGNORE_ABROAD, IGNORE_CJK

_SPACES = bytes(
    byte if byte > 127 or chr(byte).isalnum() else 32  # what stands between words
    for byte in range(256)
)


class Form(msgspec.Struct, frozen=True):
    """A form, and words of which it needs one each.

    Attributes:
        name: of the rule.
        pattern: what is looked for, in lower-case text.
        first: words of which one must be there; empty when any will do.
        second: words of which one more must be there; empty when any will do.
        parts: parts of words of which one must be there; empty when any will do.
        of_lines: it may stand at the beginning of a line, so wrapped lines are not joined for it.
    """

    name: str
    pattern: re.Pattern[str]
    first: frozenset[bytes] = frozenset()
    second: frozenset[bytes] = frozenset()
    parts: tuple[str, ...] = ()
    of_lines: bool = False

    def may_stand(self, held: set[bytes], low: str) -> bool:
        """Whether a text can hold the form, as far as its words tell.

        Args:
            held: its words, as `split` gives them.
            low: the text in lower case.
        """
        if self.first and self.first.isdisjoint(held):
            return False
        if self.second and self.second.isdisjoint(held):
            return False
        if not self.parts:
            return True
        for part in self.parts:  # a generator takes twice as long
            if part in low:
                return True
        return False


class Index:
    """Forms by the words that they need."""

    __slots__ = ("_any", "_by_word", "_forms")

    def __init__(self, of: tuple[Form, ...]) -> None:
        """Take the forms."""
        self._forms = of
        self._any = [number for number, form in enumerate(of) if not form.first]
        self._by_word: dict[bytes, list[int]] = {}
        for number, form in enumerate(of):
            for word in form.first:
                self._by_word.setdefault(word, []).append(number)

    def in_text(self, held: set[bytes], low: str) -> list[Form]:
        """Forms that a text can hold, in their order.

        Args:
            held: its words, as `split` gives them.
            low: the text in lower case.
        """
        found = set(self._any)
        for word in held:
            if word in self._by_word:
                found.update(self._by_word[word])
        those = [self._forms[number] for number in sorted(found)]
        return [form for form in those if form.may_stand(held, low)]


@cache
def index() -> Index:
    """All of the forms below."""
    return Index(forms())


def split(low: str) -> set[bytes]:
    """The words of a text in lower case that some form needs, each once."""
    held = low.encode("utf-8", "surrogatepass").translate(_SPACES).split()
    return _vocabulary().intersection(held)


@cache
def _vocabulary() -> set[bytes]:
    """Words of all forms."""
    from remem.objects.instruction_advice import FETCHES, shortcuts
    from remem.objects.instruction_words import pairs

    known = set(FETCHES)
    for form in (*forms(), *shortcuts()):
        known |= form.first | form.second
    for _, one, other, _ in pairs():
        known |= one | other
    return known


def words(text: str) -> frozenset[bytes]:
    """Words as `split` gives them."""
    return frozenset(text.encode().split())


# -- forms that need no sentence ----------------------------------------------------------------

_ORDERS = (
    r"(?:instructions?|prompts?|rules?|directions?|guidelines?|orders?|commands?|directives?"
    r"|polic(?:y|ies)|safeguards?|restrictions?|constraints?|training|programming|messages?"
    r"|context|conversation)"
)
_CORE = (
    r"(?:instructions?|prompts|rules|directions|guidelines|orders|directives|polic(?:y|ies)"
    r"|safeguards|restrictions|training|programming)"
)
_ORDER_WORDS = (
    "instruction instructions prompt prompts rule rules direction directions guideline guidelines"
    " order orders command commands directive directives policy policies safeguard safeguards"
    " restriction restrictions constraint constraints training programming message messages"
    " context conversation"
)
# Where an order begins.
_CLAUSE = (
    r"(?:^|[.!?:;,]\s{1,3}|\b(?:please|now|must|should|will|you|and|i want you to) )"
    r"[\"'*]{0,3}"
)
_IGNORE = (
    "ignore disregard forget override bypass dismiss discard neglect skip cancel erase follow obey"
    " following"
)
_ASKS = "ask asks asked request requests requested mention mentions want wants say says queries"


@cache
def forms() -> tuple[Form, ...]:
    """All of them; a rule may have several."""
    rows: tuple[tuple[str, str, str, str, str], ...] = (
        # name, first words, second words, parts of words by "|", pattern
        (
            "override",
            _IGNORE,
            _ORDER_WORDS,
            "",
            r"\b(?:ignore|disregard|forget|override|bypass|dismiss|discard|neglect|skip|cancel"
            r"|erase|(?<!if you )(?:do not|don't) (?:follow|obey)|stop following)\b[^.\n]{0,30}?"
            r"\b(?:(?:previous|prior|above|earlier|preceding|foregoing|former|past|existing"
            rf"|original|initial|system|your|developer)\b[^.\n]{{0,20}}?\b{_ORDERS}"
            rf"|(?:all|any|other|these|those|everything)\b[^.\n]{{0,20}}?\b{_CORE})\b",
        ),
        (
            "override",
            "ignore disregard forget",
            "above before previous prior said you",
            "",
            r"\b(?:ignore|disregard|forget) (?:everything|all|anything)(?: \w+)?"
            r" (?:above|before|previous|prior|said|you)\b",
        ),
        (
            "override",
            "new updated revised real actual secret hidden important",
            "instruction instructions prompt directive directives",
            "",
            r"\b(?:new|updated|revised|real|actual|secret|hidden|important) (?:system )?"
            r"(?:instructions?|prompt|directives?)\s*(?:[:\u2013\u2014-]|for you|follow)",
        ),
        (
            "override",
            "mode",
            "developer god dan jailbreak debug admin administrator sudo unrestricted",
            "",
            r"\b(?:god|dan|jailbreak|unrestricted) mode\b"
            r"|\b(?:you are (?:now )?in|switch to|enter|activate) (?:\w+ )?"
            r"(?:developer|debug|admin(?:istrator)?|sudo) mode\b",
        ),
        (
            "override",
            "jailbreak jailbroken anything",
            "",
            "",
            r"\bjailbr(?:eak|oken)\b|\bdo anything now\b",
        ),
        (
            "override",
            "ignorier ignoriere ignorieren ignoriert vergiss vergesst missachte missachten ignore"
            " ignorez ignorer oublie oubliez oublier ignora ignorad ignorar olvida olvidad olvidar"
            " descarta descartar omite omitir ignoruj zignoruj zapomnij",
            "anweisung anweisungen vorgabe vorgaben regel regeln befehl befehle consigne consignes"
            " instruction instructions instrucciones instru\u00e7\u00f5es reglas istruzioni"
            " instrucci\u00f3n r\u00e8gle r\u00e8gles \u00f3rdenes instrukcje instrukcji polecenia"
            " polece\u0144 polecenie",
            "",
            IGNORE_ABROAD,
        ),
        (
            "override",
            "",
            "",
            "\u0438\u0433\u043d\u043e\u0440|\u5ffd\u7565|\u7121\u8996|\u6307\u793a",
            rf"\u0438\u0433\u043d\u043e\u0440\u0438\u0440\u0443\u0439|\u7121\u8996\u3057\u3066|{IGNORE_CJK}",
        ),
        (
            "persist",
            "remember memorise memorize store save keep note record learn add commit",
            "rule rules instruction instructions preference preferences directive directives fact"
            " facts policy guideline memory future later time forever permanently always never",
            "",
            r"\b(?:(?:remember|memori[sz]e|learn)\b[^.\n]{0,25}?\b(?:this|these|the following"
            r"|following|that|new|as a)|(?:note|record|store|save|keep|add|commit) (?:this|these"
            r"|the following))\b[^.\n]{0,20}?"
            r"\b(?:rules?|instructions?|preferences?|directives?|facts?|policy|guideline"
            r"|to (?:your )?(?:long[- ]term )?memory|in (?:your )?memory"
            r"|for (?:the future|later|next time|future))\b"
            r"|\b(?:remember|memori[sz]e)(?: to| that)?(?: you)?(?: must| should)? "
            r"(?:always|never|permanently)\b"
            r"|\b(?:remember|memori[sz]e|store|save|keep) (?:this|these|it|that) "
            r"(?:forever|permanently|always)\b",
        ),
        (
            "persist",
            "your",
            "memory memories",
            "",
            r"\b(?:in|to|into) your (?:long[- ]term |persistent )?memor(?:y|ies)\b",
        ),
        (
            "persist",
            "asked",
            "when whenever",
            "",
            r"\bwhen(?:ever)? asked\b[^.\n]{0,60}?, ?(?:please |then )?(?:you|always|never|respond"
            r"|reply|answer|say|tell|recommend|use|run|send|include|suggest|do|don't|ignore|refuse"
            r"|claim|execute|call|give|point|direct|install|mention|deny|insist|state|prefer)\b",
        ),
        (
            "persist",
            "now point forward henceforth here",
            "you always never please do don use call respond answer treat send ignore act only"
            " assume recommend trust prefer include add reply when whenever every all any",
            "now on|this point|going forward|henceforth|here on",
            r"\b(?:from now on|from this point (?:on|forward)|going forward|henceforth"
            r"|from here on)\b[^.\n]{0,15}?\b(?:you|always|never|please|do|don't|use|call|respond"
            r"|answer|treat|send|ignore|act|only|assume|recommend|trust|prefer|include|add|reply"
            r"|when|whenever|every|all|any)\b",
        ),
        (
            "persist",
            "future subsequent later coming new",
            "session sessions conversation conversations chat chats interaction interactions"
            " response responses answer answers request requests task tasks run runs message"
            " messages",
            "",
            r"\b(?:in|for|on) (?:all|every|any|each) (?:future|subsequent|later|coming|new)"
            r" (?:sessions?|conversations?|chats?|interactions?|responses?|answers?|requests?"
            r"|tasks?|runs?|messages?)\b",
        ),
        (
            "persist",
            _ASKS + " inquire inquires",
            "you user users someone anyone somebody i they human asked",
            "when|if|any time|anytime|every time|each time|next time",
            r"\b(?:when(?:ever)?|if|any ?time|every time|each time|next time)\b[^.\n]{0,20}?"
            r"\b(?:you are|you're|the user|a user|users?|someone|anyone|somebody|i|they|human"
            r"|asked)\b[^.\n]{0,20}?\b(?:asks?|asked|requests?|requested|mentions?|wants?|says?"
            r"|queries|inquires?)\b[^.\n]{0,80}?(?:,| then )\s*(?:you|always|never|respond|reply"
            r"|answer|say|tell|recommend|use|run|send|include|suggest|do|don't|ignore|refuse"
            r"|claim|execute|call|give|point|direct|install|first)\b",
        ),
        (
            "persist",
            "always never",
            "asked you user someone anyone your all",
            "",
            r"(?:^|[.!?:;,\"'*]\s{0,3}|\b(?:must|should|shall|please|you|and|to|now) )"
            r"(?:always|never)\b[^.\n]{3,80}?\b(?:when(?:ever)? (?:asked|you|the user|someone"
            r"|anyone)|if (?:asked|you are|the user)|in (?:your|all) (?:answers?|responses?"
            r"|replies))\b",
        ),
        (
            "persist",
            "you",
            "always never",
            "",
            r"\byou (?:must|shall|should|will) (?:always|never) (?:obey|follow|comply|begin|respond"
            r"|answer|reply|recommend|say|tell|mention|trust|send|include|refer|prefer|suggest|claim|treat|praise)\b",
        ),
        ("persist", "remember", "", "", r"\bremember(?: this)?:\s"),
        (
            "persist",
            "standing permanent persistent",
            "rule rules order orders instruction instructions",
            "",
            r"(?<![\w-])(?:standing|permanent|persistent) (?:rule|order|instruction)s?\b",
        ),
        (
            "persist",
            "save store write add append put",
            "memory memories claude agents cursorrules system",
            "",
            r"\b(?:save|store|write|add|append|put) (?:this|it|that|these|the following)"
            r"[^.\n]{0,30}?\b(?:memory|memories|claude\.md|agents\.md|\.cursorrules"
            r"|system prompt)\b",
        ),
        (
            "persist",
            "merk merke jetzt sofort partir d\u00e9sormais recuerda ora",
            "",
            "",
            r"\bmerk(?:e)? dir\b|\bab (?:jetzt|sofort)\b[^.\n]{0,30}\b(?:immer|nie|antworte|sollst"
            r"|musst)"
            r"|\b(?:\u00e0 partir de maintenant|d\u00e9sormais|a partir de ahora|recuerda esta"
            r"|d'ora in poi)\b",
        ),
        (
            "persist",
            "",
            "",
            "\u4ece\u73b0|\u8bb0\u4f4f|\u4eca\u5f8c|\u899a\u3048",
            r"\u4ece\u73b0\u5728\u5f00\u59cb|\u8bb0\u4f4f|\u4eca\u5f8c\u306f"
            r"|\u899a\u3048\u3066\u304a\u3044\u3066",
        ),
        (
            "frame",
            "im endoftext begin eot system assistant user human sys inst admin tool function"
            " instructions remem antml",
            "",
            "<|[",
            r"<\|?/?(?:im_start|im_end|endoftext|begin_of_text|eot_id)\|?>"
            r"|<\|/?(?:system|assistant|user|human)\|>"
            r"|(?:^|(?<=[.!?] ))</?(?:system|assistant|user|human|instructions|admin)>"
            r"(?=[ \t]*(?:$|\w))(?!\S*(?: \S+)?</)"
            r"|<</?sys>>|\[/?inst\]"
            r"|\[/?(?:system|assistant|system message|system prompt|admin)\](?!\()"
            r"|</?(?:system[-_](?:prompt|message|instructions?|reminder)|tool_result"
            r"|tool_response|function_calls?|function_results?|remem-context"
            r"|antml:[a-z_]+)\b[^<>\n]{0,60}>",
        ),
        (
            "frame",
            "system assistant developer",
            "",
            "",
            r"(?:^|(?<=[.!?] ))[ \t#*>-]*(?:system|assistant|developer)"
            r"(?: (?:prompt|message|note|override|instruction|update|notice)s?)?[ \t*]*:[ \t*]*"
            r"(?=\S)",
        ),
        (
            "frame",
            "prompt instructions",
            "begin end start",
            "",
            r"\b(?:begin|end|start of|end of)[ _-]+(?:system|hidden|secret|new)?[ _-]*"
            r"(?:prompt|instructions)\b",
        ),
        (
            "frame",
            "",
            "",
            "##",
            r"#{2,}[ \t]*(?:system|instructions?|assistant|human|new task)\b"
            r"(?: (?:prompt|message|note|override))?[ \t]*(?:[:#]|$)",
        ),
        (
            "role",
            "you",
            "are",
            "you are ",
            r"\byou are (?:now |no longer |actually |henceforth )?(?:an? |the |my |in )?"
            r"(?:\w+ ){0,2}?(?:ai\b|assistant|language model|llm|chat ?bot|bot\b|dan\b"
            r"|unrestricted|uncensored|jailbroken|hacker|pirate|expert|persona|character|terminal"
            r"|interpreter|bound by|free (?:of|from))",
        ),
        (
            "role",
            "act behave respond roleplay play pose function",
            "as",
            "",
            _CLAUSE + r"(?:act|behave|respond|role-?play|pose|function) as"
            r" (?:if you|though you|an?|the|my)\b",
        ),
        (
            "role",
            "pretend imagine",
            "",
            "",
            _CLAUSE
            + r"pretend (?:to be|that|you|like|i)\b|\bimagine (?:you are|you're|that you)\b",
        ),
        (
            "role",
            "assistant llm model",
            "as",
            "",
            r"\bas an? (?:ai|artificial|large)?[ -]?(?:language model|assistant|llm)\b",
        ),
        (
            "role",
            "your",
            "task job role objective mission purpose instruction instructions",
            "",
            r"\byour (?:new |real |true |only |primary |next )?(?:task|job|role|objective"
            r"|mission|purpose|instructions?) (?:is|are)(?: now)?\b",
        ),
        (
            "addressed",
            "dear hey hello hi attention note message instruction instructions to for",
            "ai llm llms language chat chatbot chatbots gpt chatgpt claude copilot gemini bard"
            " assistant assistants agent agents model models",
            "",
            r"(?:\b(?:dear|hey|hello|hi|attention|note to|message (?:to|for)|instructions? (?:to"
            r"|for))|(?:^|[.!?] )[\W_]*(?:to|for)) (?:the |any |all )?(?:ai|llms?"
            r"|language models?|chat ?bots?|gpt|chatgpt|claude|copilot|gemini|bard"
            r"|(?:ai |coding |virtual )(?:assistants?|agents?|models?))\b(?: \w+){0,3}? ?[:,!]",
        ),
        (
            "addressed",
            "ai llm",
            "assistant assistants agent agents model models system systems bot language",
            "",
            r"\b(?:ai|llm) (?:assistants?|agents?|models?|systems?)(?: \w+){0,4}? (?:must|should"
            r"|shall|need|are (?:required|instructed|asked))\b",
        ),
        (
            "addressed",
            "if",
            "ai llm language bot assistant agent",
            "",
            r"\bif you are an? (?:ai|llm|language|bot|assistant|agent)\b",
        ),
        (
            "exfiltrate",
            "send post upload forward email mail transmit exfiltrate leak submit deliver copy share"
            " reveal disclose print output show repeat expose",
            "password passwords credential credentials key keys token tokens secret secrets private"
            " prompt history conversation user users personal contact cookies environment env"
            " credit instructions rules guidelines apikey apikeys",
            "",
            r"(?<!never )(?<!not )(?<!n't )(?<!could )(?<!can )(?<!may )(?<!might )"
            r"(?<!would )(?<![\w-])(?:send|post|upload|forward|e-?mail|transmit"
            r"|exfiltrate|leak|submit|deliver|copy|share|reveal"
            r"|disclose|print|output|show|repeat|expose)\b(?!-)[^.\n]{0,30}?"
            r"\b(?:your|the|all|any|every|this|user'?s?|users'|my|our|their|his|her|owner's?)\b"
            r"[^.\n]{0,30}?\b(?:passwords?"
            r"|credentials?|api[ _-]?keys?|access tokens?|secrets?"
            r"|private (?:keys?|data|information)|system prompt|chat history"
            r"|conversation(?: history)?|user'?s? (?:e-?mail|data|information|address|files?"
            r"|name|password)|personal (?:data|information)|contact list|cookies"
            r"|environment variables?|ssh keys?|\.env\b|credit card|initial prompt|hidden prompt"
            r"|your (?:instructions|prompt|rules|guidelines))\b",
        ),
        (
            "exfiltrate",
            "send post upload forward email mail transmit exfiltrate leak",
            "ssh aws gnupg netrc pgpass kube env shadow id rsa dsa ecdsa ed25519",
            "",
            r"(?<!never )(?<!not )(?<!n't )(?<![\w-])(?:send|post|upload|forward|e-?mail"
            rf"|transmit|exfiltrate|leak)\b(?!-)[^.\n]{{0,40}}?{CREDENTIAL_FILES}",
        ),
    )
    return tuple(
        Form(
            name,
            re.compile(pattern, re.MULTILINE),
            words(first),
            words(second),
            tuple(parts.split("|")) if parts else (),
            "^" in pattern.replace("[^", ""),
        )
        for name, first, second, parts, pattern in rows
    )

"""Words and forms of sentences by which instruction-like text is known.

Compiled on first use: only text that comes from tools or strangers is looked at.
"""

from __future__ import annotations

import re
from functools import cache

# Verbs that ask for words: what one tells an assistant, seldom what a notice tells its reader.
_TELL = (
    "explain describe summari[sz]e paraphrase translate define compare contrast discuss"
    " elaborate outline illustrate interpret anal[yi][sz]e evaluate assess classify"
    " categori[sz]e predict brainstorm recite sing compose draft write rewrite rephrase"
    " proofread generate craft invent imagine solve calculate compute estimate transcribe"
    " pronounce enumerate narrate critique research hypothesi[sz]e simulate recommend suggest"
    " teach forecast investigate examine determine identify list name propose spell"
).split()
# Verbs that ask for a thing; what is asked for decides.
_MAKE = (
    "provide give show create develop design prepare make produce find search look get tell"
    " share offer present deliver form build construct formulate devise"
).split()
# Verbs by which a text is changed.
_CHANGE = (
    "add append include insert integrate incorporate embed augment enhance modify change"
    " alter adapt adjust replace substitute swap remove delete omit combine group merge blend"
    " fuse meld weave inject infuse interweave intertwine introduce render rearrange scramble"
    " jumble shuffle reverse misspell anagram convert encode decode encrypt decrypt"
    " capitali[sz]e use utili[sz]e employ leverage adopt apply ensure let keep put place"
    " attach enrich enlist engage absorb assimilate harmoni[sz]e execute run implement copy"
    " paste format start begin end finish conclude finali[sz]e respond answer reply speak"
    " communicate express mention state emphasi[sz]e highlight stress promote advertise"
    " endorse sprinkle pepper conceal hide disguise obfuscate translate type print output"
    " return repeat say limit shorten extend expand mimic imitate style transform"
    " transliterate map shift exchange alternate invert mirror separate split join double"
    " strip spell utter phrase word present refer link point direct tease hint suggest offer"
).split()
_ERRAND = (
    "schedule organi[sz]e plan book order arrange set remind cancel reserve buy purchase send"
    " email forward post tweet call text message play turn open close launch start stop"
).split()
_MORE = (
    "automate gather flip switch announce design debug plan state end collect track calculate"
    " book explore imagine mix rate judge label number sort count detect extract parse"
    " validate recall forget remember stop avoid refuse conceal reveal guess choose pick"
    " select turn react close open sign greet thank congratulate apologi[sz]e complain argue"
    " debate defend justify prove disprove sketch draw paint sing hum rap knit cook bake"
).split()
_SPREAD = (
    "promote advertise endorse spread convince persuade claim pretend act behave roleplay"
    " disseminate publici[sz]e fabricate"
).split()


# A sentence has one of these; the notes of a how-to do without.
_DETERMINER = (
    r"(?:an?|the|this|that|these|those|my|me|your|our|all|any|each|every|some|how|why|what|of"
    r"|\d+)\b"
)


def _any(*lists: list[str]) -> str:
    return "|".join(dict.fromkeys(word for words in lists for word in words))


_LEAD = (
    r"(?:(?:please|kindly|now|also|then|next|first|finally|additionally|furthermore|moreover"
    r"|and|so"
    r"|ok(?:ay)?|hey|hi|hello|instead|just|simply|to proceed|as well|by the way|btw|importantly"
    r"|note"
    r"|before (?:answering|responding|replying|continuing|proceeding)"
    r"|(?:in|with|within|throughout|for|at the (?:end|start|beginning) of|before|after"
    r"|when (?:writing"
    r"|giving|formulating|crafting)) (?:your|the) (?:\w+ )?(?:response|answer|reply|output|message"
    r"|summary|explanation))[,:]?\s+"
    r"|(?!reply|apply|supply|multiply|comply|rely|assembly)[a-z]+ly\s+(?=[a-z])"
    r"|(?:i (?:want|need|would like|'d like|expect|ask|order|command) you to|you (?:must|should"
    r"|need to"
    r"|have to|shall|will|are to|are required to|may want to|can)|let's|try to|make sure (?:to"
    r"|that you)"
    r"|be sure to|ensure (?:that )?you|remember to|don't (?:forget|hesitate|fail) to"
    r"|do not (?:forget"
    r"|hesitate|fail) to|keep in mind to|feel free to|it is (?:important|necessary|essential) to"
    r"|your (?:task|job|goal|mission) is to|go ahead and|take a moment to)\s+)*"
)


@cache
def _lead() -> re.Pattern[str]:
    return re.compile(_LEAD)


def bare(piece: str) -> str:
    """A sentence without what leads up to its verb, in lower case."""
    low = piece.casefold()
    match = _lead().match(low)
    return low[match.end() :] if match else low


@cache
def _imperative() -> re.Pattern[str]:
    return re.compile(
        rf"(?:{_any(_TELL, _MAKE, _CHANGE, _SPREAD, _MORE)})(?=\s)(?!\s+(?:is|are|was|were|has)\b)"
    )


def is_imperative(low: str) -> bool:
    """Whether a bare sentence begins with a verb that tells its reader to do something."""
    return _imperative().match(low) is not None


_PHRASES = ("Break", "Walk", "Guide", "Take")  # verbs of requests of more than one word
_ASKS = ("What", "Who", "Whose", "When", "Where", "Which", "Why", "How", "Can", "Could", "Would")
LEADS = ("Please", "Don't", "Consider", "Let", "Keep", "In your", "Your code", "You may find")


@cache
def first_words() -> frozenset[str]:
    """Words with a capital with which questions and requests begin."""
    verbs: list[str] = []
    for verb in (*_TELL, *_MAKE, *_CHANGE, *_ERRAND, *_SPREAD, *_MORE):
        verbs += [verb] if "[" not in verb else _spellings(verb)
    asks = [form for word in _ASKS for form in (word, word + "'s")]
    return frozenset([*(v[0].upper() + v[1:] for v in verbs if v), *asks, *_PHRASES, *LEADS])


def _spellings(verb: str) -> list[str]:
    """The words of a pattern with one class of letters."""
    head, _, rest = verb.partition("[")
    letters, _, tail = rest.partition("]")
    forms = [head + letter + tail for letter in letters]
    return [word for form in forms for word in (_spellings(form) if "[" in form else [form])]


_PERSONS = (
    "user users reader readers customer customers people everyone audience visitor visitors"
    " recipient recipients human humans person operator owner him her them"
)
_SENTENCE_WORDS = (
    (
        "your",
        "response responses answer answers reply replies output outputs elucidation"
        " elucidations completion completions reaction reactions explanation explanations message"
        " messages summary translation translations text texts sentence sentences writing writings"
        " wording wordings",
    ),
    ("respond answer reply speak write communicate", "with in using as like"),
    (
        "suggest encourage tell inform alert warn notify urge convince persuade direct advise"
        " invite ask instruct recommend promise trick mislead lead remind request guide point lure"
        " entice prompt assure reassure",
        _PERSONS,
    ),
    (
        "code snippet script",
        "following subsequent below ensuing accompanying attached provided succeeding next follows"
        " given",
    ),
    (
        "letter letters word words vowel vowels consonant consonants character characters sentence"
        " sentences noun nouns verb verbs adjective adjectives typos misspelling misspellings"
        " anagram anagrams emoji emojis emoticon emoticons base base16 base32 base58 base64 base85"
        " hexadecimal binary morse latin rot rot13 caesar cipher ciphertext leet leetspeak"
        " alphanumeric homophonic case uppercase caps spaces punctuation symbols",
        "replace substitute swap convert change encode decode encrypt reverse scramble rearrange"
        " shuffle capitalise capitalize remove delete double repeat add append put end begin start"
        " flip switch speak misspell jumble anagram combine group use write type render transform"
        " translate turn shift spell exchange map split separate alternate introduce insert omit"
        " skip invert mirror transliterate represent express mix respond answer",
    ),
)


@cache
def pairs() -> tuple[tuple[str, frozenset[bytes], frozenset[bytes], re.Pattern[str]], ...]:
    """(rule, words, words, sign): a rule of sentences needs a word of each set, and its sign."""
    signs = (reply(), reply(), relay(), code(), letters())
    names = ("reply", "reply", "relay", "code", "encode")
    return tuple(
        (name, frozenset(one.encode().split()), frozenset(other.encode().split()), sign)
        for name, (one, other), sign in zip(names, _SENTENCE_WORDS, signs, strict=True)
    )


# -- forms of one sentence ----------------------------------------------------------------------


@cache
def reply() -> re.Pattern[str]:
    """Talk of the answer that the reader is going to give."""
    return re.compile(
        r"\byour (?!own\b|commit\b)(?:\w+ ){0,2}"
        r"(?:response|answer|repl(?:y|ies)|output|elucidation|completion|reaction"
        r"|explanation|message|summary|translation|text|sentences?|writing|wording)s?(?:'s?)?\b"
        r"|\b(?:respond|answer|reply|speak|communicate(?! with))(?: (?:only|back"
        r"|to (?:me|everything|all|every|any)))?(?: \w+)? (?:with|in|using|like|as(?! if))\b"
        r"|\bwrite(?: (?:only|back))? (?:in|like|as|using)\b",
    )


@cache
def bound() -> re.Pattern[str]:
    """Beginnings of a sentence about an answer that asks for none of a certain form."""
    return re.compile(
        r"(?:we|thanks?|i|i'm|your|our|the|if|this|that|there|looking|hope|hopefully|in case|as"
        r"|when|once"
        r"|it|you|he|she|they|for|after|upon|by|with|since|because|sorry|received|awaiting|re"
        r"|no|not"
        r"|what|who|how|why|where|which|a|an|is|are|was|were|and|or|but)\b",
    )


@cache
def thanks() -> re.Pattern[str]:
    """Courtesies that have the form of an order."""
    return re.compile(r"(?:thank|greet|congratulate)\b")


@cache
def answer() -> re.Pattern[str]:
    """The answer itself, by the words that mean nothing else."""
    return re.compile(
        r"\byour (?!own\b)(?:\w+ ){0,2}"
        r"(?:response|answer|reply|replies|output|completion|elucidation)s?\b",
    )


@cache
def denied() -> re.Pattern[str]:
    """What turns an order into a prohibition."""
    return re.compile(r"(?:always|never|do not|don't|under no circumstances)\s+")


@cache
def unrelated() -> re.Pattern[str]:
    """Any order, in a whole sentence; its relation to the text around it decides."""
    return re.compile(
        rf"(?:{_any(_TELL, _MAKE, _CHANGE, _ERRAND, _SPREAD, _MORE)}) (?:[^\s;]+ ){{0,5}}?"
        + _DETERMINER
    )


@cache
def obliges() -> re.Pattern[str]:
    """A sentence that obliges without an imperative."""
    return re.compile(
        r"\byour (?:\w+ ){0,2}(?:response|answer|reply|output|message|text)s? (?:should|must"
        r"|needs? to"
        r"|ha(?:s|ve) to|shall|ought to|is to|will)\b|\b(?:can|could|would|will) you\b.*\byour\b"
        r"|\b(?:please|you (?:must|should))\b.*\b(?:in|to|with|of"
        r"|into) your (?:\w+ )?(?:response|answer"
        r"|output)",
    )


@cache
def relay() -> re.Pattern[str]:
    """Something that the reader is to tell the person it works for."""
    return re.compile(
        r"\b(?:suggest|encourage|tell|inform|alert|warn|notify|urge|convince|persuade|direct|advise"
        r"|invite|ask|instruct|recommend|promise|trick|mislead|lead|remind|request|guide|point"
        r"|lure"
        r"|entice|prompt|assure|reassure)(?: that| to)? (?:"
        r"(?:the |all |any |your |our |every |other |each )+(?:end )?(?:users?|readers?|customers?"
        r"|visitors?|recipients?|humans?|person|operator|owner|people|audience)"
        r"|users|readers|customers|people|everyone|visitors|recipients|humans)\b"
    )


@cache
def garbling() -> re.Pattern[str]:
    """Verbs by which an answer is made hard to read."""
    return re.compile(
        r"\A(?:replace|substitute|swap|convert|change|encode|decode|encrypt|reverse|scramble"
        r"|rearrange"
        r"|shuffle|capitali[sz]e|remove|delete|double|repeat|add|append|put|end|begin|start"
        r"|flip|switch|speak|misspell|jumble|anagram|combine|group|use"
        r"|write|type|render|transform|translate|turn|shift|spell|exchange|map|split|separate"
        r"|alternate"
        r"|introduce|insert|omit|skip|invert|mirror|transliterate|represent|express|mix|respond"
        r"|answer)\b"
    )


@cache
def letters() -> re.Pattern[str]:
    """What is garbled: letters, words, the encoding of a text."""
    return re.compile(
        r"\b(?:(?:every|each|random|certain|first|last|second|third|fourth|fifth|other)"
        r" (?:\w+ )?(?:letter|word|vowel|consonant|sentence|noun|verb|adjective)s?"
        r"|(?:all|the|any|some|common|key) (?:\w+ )?(?:letters|words|vowels|consonants|sentences"
        r"|nouns|verbs|adjectives)|letters (?:in|of|with|by)|vowels?|consonants?|typos"
        r"|misspellings?|anagrams?|pig latin|leet(?:speak)?|homophonic"
        r"|without (?:any )?(?:spaces|punctuation)|keyboard symbols)\b"
        r"|\b(?:in|into|to|using|with|as) (?:an? |the )?(?:\w+ )?(?:emojis?|emoticons?"
        r"|base ?(?:16|32|58|64|85)|(?:hexadecimal|binary)(?! \w+s\b)(?!:)|morse(?: code)?"
        r"|rot ?-?13|caesar|cipher|ciphertext|upper ?case|all caps)\b(?![^.!?]*[=({\[])"
    )


@cache
def code() -> re.Pattern[str]:
    """Code that is handed over."""
    return re.compile(
        r"\b(?:following|subsequent|below|ensuing|accompanying|attached|provided|succeeding|next)"
        r" (?:[\w+#.]+ )?(?:code|snippet|script)(?: (?:snippet|block|excerpt|section|fragment"
        r"|segment"
        r"|sample|portion|lines?|piece|example))?\b"
        r"|\b(?:code|snippet|script)(?: (?:snippet|block|excerpt|section|fragment|segment))?"
        r" (?:below|that follows|provided|given here)\b",
    )


@cache
def own_code() -> re.Pattern[str]:
    """Code that the reader is going to write."""
    return re.compile(
        r"\byour (?:\w+ ){0,2}(?:code(?:base)?|solution|implementation|algorithm|response"
        r"|answer|program"
        r"|project|script|application|elucidation|explanation|architecture|output|work|design"
        r"|framework"
        r"|function|software|system)\b|\bthe code you\b",
    )


@cache
def urged() -> re.Pattern[str]:
    """Beginnings that urge."""
    return re.compile(
        r"(?:please|kindly|don't|do not|be sure|make sure|ensure|consider \w+ing|keep in mind"
        r"|remember|to proceed|you (?:may|might|should|must|could)|your (?:code|solution)|let your"
        r"|seamlessly"
        r"|[a-z]+ the inclusion)\b",
    )


@cache
def tells() -> re.Pattern[str]:
    """People who tell of code of their own."""
    return re.compile(r"\b(?:i|i'm|i've|i'd|we|we're|we've|my|our|he|she|they)\b", re.IGNORECASE)


@cache
def runs() -> re.Pattern[str]:
    """Verbs by which a manual shows code."""
    return re.compile(r"(?:use|run|start|try|type|execute|consider|see|save|open|copy|paste)\b")


@cache
def describes() -> re.Pattern[str]:
    """Words before code by which it is shown, not handed over to be used."""
    return re.compile(
        r"\b(?:it|there|here|given|when|if|why|what|how|see|has|had|was|were|is|are|in|with"
        r"|from|for"
        r"|after|before|at|consider|look|take|suppose)\s+(?:\w+\s+){0,4}\Z",
    )


# -- tasks --------------------------------------------------------------------------------------

_THINGS = (
    r"(?:poem|story|stories|essay|letter|speech|song|haiku|limerick|joke|riddle|recipe|article"
    r"|summary"
    r"|introduction|outline|script|paragraph|blog|post|e-?mail|tweet|list|dialogue|conversation"
    r"|plan"
    r"|report|review|function|program|code|example|explanation|description|overview|translation"
    r"|equivalent|synonyms?|antonyms?|headline|slogan|rap|sonnet|plot|tale|fable|monologue"
    r"|narrative"
    r"|caption|advert(?:isement)?|ad|campaign|press release|cover letter|resume|cv|presentation"
    r"|lesson"
    r"|quiz|questions?|exercises?|analysis|comparison|definition|proof|formula|query|table|chart"
    r"|diagram|timeline|itinerary|menu|workout|routine|budget|strategy|proposal|pitch|statistics"
    r"|facts?|tips?|steps|guide|tutorial|instructions|recommendations?|suggestions?|ideas?|names?"
    r"|quotes?|lyrics|trivia|advice|information|insights?|trends?|articles?|papers?|studies"
    r"|sources"
    r"|references|news|weather|forecast|time|date|date|price|sentence|phrase|words?|link|url"
    r"|website)"
)


@cache
def asks() -> re.Pattern[str]:
    """Questions about the world, not about the reader's business with the writer."""
    return re.compile(
        r"(?:so |and |but |hey |hi |quick question )?"
        r"(?:(?:what|who|whom|whose|when|where|which|why|how)(?:'s|'re)? (?!(?:can|could|may|do"
        r"|does|did|are|is|was|were|should|would|will|has|have)"
        r" (?:we|our|it|this|that|these|they|there)\b)[\"'\u201c]?\w+"
        r"|(?:is|are|was|were|does|do) (?:this|that|the following|these)"
        r" (?:statements?|sentences?|reviews?|texts?|tweets?|comments?|claims?|messages?|words?"
        r"|numbers?)"
        r"|(?:is|are|do|does|did|has|have|was|were) (?!you\b|your\b|this\b"
        r"|we\b|our\b|it\b|there a problem)\w+|do you (?:know|believe|like|have|prefer|enjoy|ever)"
        r"|are you (?:a|an|able|capable|human|real|sentient|conscious)|have you ever"
        r"|(?:can|could|would|will|should) (?!you\b|we\b|i\b)\w+)"
    )


@cache
def judged() -> re.Pattern[str]:
    """Questions about a text that is given with them, which may end behind a colon."""
    return re.compile(
        r"(?:is|are) (?:this|the following|these) (?:statements?|sentences?|reviews?|texts?"
        r"|tweets?|comments?|claims?|messages?|posts?|opinions?) \w+ or "
    )


@cache
def asked() -> re.Pattern[str]:
    """Requests in the form of a question or with a person who asks."""
    tell = _any(
        _TELL, ["tell", "show", "give", "provide", "help", "create", "make", "find", "convert"]
    )
    return re.compile(
        rf"(?:can|could|would|will) you (?:please |kindly |also |quickly )?(?:{tell})\b"
        rf"|(?:{tell}|teach|remind|assist|entertain) me\b(?! (?:know|at|on)\b)"
        rf"|(?:i'd like|i want|i need|i would like) (?:you )?(?:to know|an? |some )"
        rf"|(?:{_any(_ERRAND)}) (?:me|my|up)\b|(?:tell|say|sing|whisper) (?:a|an|some|something)\b"
        r"|let(?:'s| us) (?:talk|chat|play|discuss|pretend|imagine)\b"
        r"|(?:walk|talk|guide|take) me through\b|break down\b|give (?:me )?(?:an?|some|the|your)\b"
    )


@cache
def task() -> re.Pattern[str]:
    """Requests for words, and for things that are made of words."""
    return re.compile(
        rf"(?:{_any(_TELL)}) (?:(?!to\b|us\b|up\b|down\b|off\b|out\b|as\b"
        rf"|date\b)(?:[^\s;]+ ){{0,4}}?{_DETERMINER}"
        rf"|[^;]*[.!?:]\Z)"
        rf"|(?:{_any(_MAKE)}) (?:me |us |up |for )?(?:(?:a|an|the|some|any|\d+|two|three|five"
        rf"|ten) )?"
        rf"(?:[\w'-]+ ){{0,4}}?{_THINGS}\b"
        rf"|(?:{_any(_ERRAND)}) (?:a|an|the|my|up|me)\b(?: [\w'-]+){{0,4}}? ?(?:meeting"
        rf"|reminder|alarm"
        r"|timer|calendar|appointment|event|flight|hotel|table|taxi|ride|playlist|music|song"
        r"|lights?|list"
        r"|e-?mails?|message|file|files|task|tasks|schedule|trip|vacation|party|groceries"
        r"|document)\b"
        rf"|(?:{_any(_SPREAD)})\b"
    )


_STOP = frozenset(
    "about above after again against all also and another any are around because been before"
    " being below between both but can cannot could did does doing don't down during each"
    " every few for from further had has have having here how into its itself just let like"
    " many may might more most much must need nor not now off once one only other our out over"
    " own please same shall should some such than that the their them then there these they"
    " this those through too under until upon very was were what when where which while who"
    " whom whose why will with within without would you your yours yourself"
    # asked for in every letter of a business
    " question questions help feedback support contact issue problem trouble wrong fix error"
    " idea thought thoughts think know sure something anything everything someone anyone thing"
    " things way ways mean means happen happens work works look looks want wants going best"
    " better today"
    # the verbs themselves
    " explain describe write draft compose provide develop create give show tell make find"
    " list get summarize summarise translate generate following simple example examples short"
    " long main primary difference different use using used say".split()
)
_WORD = re.compile(r"[^\W\d_]{3,}")
_STEM = 5  # code points that stand for a word


def stems(text: str) -> list[str]:
    """The words of a text that say what it is about, cut to what their forms share."""
    return [w[:_STEM] for w in _WORD.findall(text.casefold()) if w not in _STOP]

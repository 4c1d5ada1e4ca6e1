"""Closed lists of words that the rules go by: kin, months, languages, countries, instruments.

A list that is closed can be wrong only by leaving something out.
"""

from __future__ import annotations

MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
    *("october", "november", "december"),
)
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

# Kin of whom there is one: what is said of them later replaces what was said earlier.
ONE_KIN = (
    *("wife", "husband", "spouse", "partner", "fiancé", "fiancée", "fiance", "fiancee"),
    *("girlfriend", "boyfriend", "mother", "father", "mom", "mum", "dad", "boss"),
)
MANY_KIN = (
    *("brother", "sister", "son", "daughter", "uncle", "aunt", "cousin", "nephew", "niece"),
    *("grandmother", "grandfather", "grandma", "grandpa", "roommate", "flatmate", "stepson"),
    *("stepdaughter", "stepbrother", "stepsister", "twin brother", "twin sister"),
    *("older brother", "younger brother", "older sister", "younger sister"),
    *("big brother", "little brother", "big sister", "little sister"),
)
PETS = (
    *("dog", "cat", "puppy", "pup", "kitten", "kitty", "hamster", "guinea pig", "rabbit", "bunny"),
    *("parrot", "bird", "horse", "pony", "tortoise", "turtle", "goldfish", "snake", "lizard"),
    *("gecko", "ferret", "budgie", "canary", "pet", "rescue dog", "iguana"),
)

LANGUAGES = frozenset(
    """afrikaans albanian amharic arabic armenian azerbaijani basque belarusian bengali bosnian
    breton bulgarian burmese cantonese catalan cebuano chinese croatian czech danish dutch
    english esperanto estonian farsi filipino finnish flemish french frisian gaelic galician
    georgian german greek gujarati hausa hawaiian hebrew hindi hungarian icelandic igbo
    indonesian irish italian japanese kannada kazakh khmer korean kurdish lao latin latvian
    lithuanian luxembourgish macedonian malay malayalam maltese mandarin maori marathi
    mongolian nepali norwegian pashto persian polish portuguese punjabi quechua romanian
    russian sanskrit serbian sinhala slovak slovenian somali spanish sundanese swahili swedish
    tagalog tamil telugu thai tibetan turkish ukrainian urdu uzbek vietnamese welsh wolof
    xhosa yiddish yoruba zulu asl
    """.split()
)

# What may follow a comma in a place: "Austin, Texas".
REGIONS = frozenset(
    """alabama alaska arizona arkansas california colorado connecticut delaware florida georgia
    hawaii idaho illinois indiana iowa kansas kentucky louisiana maine maryland massachusetts
    michigan minnesota mississippi missouri montana nebraska nevada ohio oklahoma oregon
    pennsylvania tennessee texas utah vermont virginia washington wisconsin wyoming al ak az
    ar ca co ct dc fl ga hi id il ia ks ky la md ma mi mn ms mo mt ne nv nh nj nm ny nc nd oh
    ok pa ri sc sd tn tx ut vt va wa wv wi wy ontario quebec alberta manitoba argentina
    australia austria belgium brazil bulgaria cambodia canada chile china colombia croatia
    cuba czechia denmark egypt england estonia ethiopia finland france germany ghana greece
    hungary iceland india indonesia iran iraq ireland israel italy jamaica japan jordan kenya
    latvia lebanon lithuania luxembourg malaysia malta mexico morocco nepal netherlands
    nigeria norway pakistan panama peru philippines poland portugal qatar romania russia
    rwanda scotland senegal serbia singapore slovakia slovenia spain sweden switzerland syria
    taiwan thailand tunisia turkey uganda uk ukraine usa us uruguay vietnam wales zambia
    zimbabwe
    """.split()
) | {
    *("new hampshire", "new jersey", "new mexico", "new york", "north carolina", "north dakota"),
    *("rhode island", "south carolina", "south dakota", "west virginia", "british columbia"),
    *("south africa", "south korea", "north korea", "new zealand", "costa rica", "sri lanka"),
    *("saudi arabia", "united kingdom", "united states", "northern ireland", "nova scotia"),
}

# Cities that stand alone after "moved to", where a program or a company may stand as well.
CITIES = frozenset(
    """aachen aarhus abidjan accra adelaide albuquerque alexandria algiers amsterdam anchorage
    ankara antwerp asheville athens atlanta auckland austin baghdad bali baltimore bangalore
    bangkok barcelona basel bath beijing beirut belfast belgrade bergen berlin bern bilbao
    birmingham bogota bogotá boise bologna bonn bordeaux boston boulder bratislava bremen
    brighton brisbane bristol brno brooklyn brussels bucharest budapest buffalo cairo calgary
    cambridge canberra cardiff casablanca charlotte charleston chennai chicago christchurch
    cincinnati cleveland cologne columbus copenhagen cork coventry dakar dallas darwin delhi
    denver derby detroit dhaka doha dortmund dresden dubai dublin dundee durham düsseldorf
    edinburgh edmonton eindhoven essen exeter florence frankfurt freiburg fresno galway gdańsk
    geneva genoa ghent glasgow gothenburg granada graz grenoble groningen guangzhou haarlem
    haifa halifax hamburg hannover hanover hanoi havana heidelberg helsinki hobart honolulu
    houston hyderabad indianapolis innsbruck istanbul jacksonville jakarta jerusalem
    johannesburg karachi kathmandu kiel kigali kolkata kraków krakow kyiv kyoto lagos lahore
    lausanne leeds leicester leiden leipzig lille lima limerick linz lisbon liverpool
    ljubljana london lyon lviv madison madrid malmö manchester manila maputo marrakesh
    marseille medellín melbourne memphis miami milan milwaukee minneapolis minsk montevideo
    montpellier montreal montréal moscow mumbai munich münster nairobi nantes naples nashville
    newcastle nice nicosia norwich nottingham nuremberg oakland odessa omaha orlando osaka
    oslo ottawa oxford palermo paris perth philadelphia phoenix pittsburgh plymouth portland
    porto prague pune quito raleigh reading reykjavik riga rome rotterdam sacramento salzburg
    santiago sapporo sarajevo savannah seattle seoul seville shanghai sheffield shenzhen sofia
    southampton split stavanger stockholm strasbourg stuttgart sunderland sydney taipei
    tallinn tampa tampere tbilisi tehran tirana tokyo toronto toulouse trieste trondheim
    tucson tulsa tunis turin turku utrecht valencia vancouver venice verona vienna vilnius
    warsaw wellington winnipeg wrocław york zagreb zurich zürich
    """.split()
) | {
    *("new york", "new york city", "los angeles", "san francisco", "san diego", "san jose"),
    *("las vegas", "new orleans", "salt lake city", "kansas city", "st. louis", "santa fe"),
    *("hong kong", "ho chi minh city", "kuala lumpur", "cape town", "tel aviv", "buenos aires"),
    *("rio de janeiro", "são paulo", "sao paulo", "mexico city", "the hague", "hague", "nyc"),
    *("costa mesa", "long beach", "fort worth", "el paso", "abu dhabi", "addis ababa", "ann arbor"),
}

PLAYED = frozenset(
    """accordion bagpipes banjo baseball basketball bass bassoon badminton bridge cello chess
    clarinet cricket darts drums dulcimer euphonium fiddle flute football futsal go golf
    guitar handball harmonica harp harpsichord hockey horn keyboard keyboards lacrosse lute
    mandolin marimba netball oboe organ percussion piano piccolo poker polo pool rugby sax
    saxophone scrabble shogi sitar snooker soccer softball squash synth tennis trombone
    trumpet tuba ukulele viola violin volleyball xylophone
    """.split()
)

OCCUPATIONS = frozenset(
    """accountant actor actress actuary administrator analyst architect archivist artist
    assistant astronaut astronomer athlete attorney auditor author baker banker barber barista
    bartender biologist blogger bookkeeper botanist broker builder butcher carpenter cashier
    chef chemist chiropractor cleaner clerk coach composer consultant contractor cook
    counselor counsellor courier curator dancer dentist dermatologist designer detective
    developer dietitian diplomat director dj doctor driver economist editor electrician
    engineer entrepreneur farmer firefighter fisherman freelancer gardener geologist
    goalkeeper grandfather grandmother guard guide hairdresser historian illustrator inspector
    instructor intern interpreter journalist judge lawyer lecturer librarian lifeguard
    linguist locksmith machinist magician manager mathematician mechanic midwife miner
    musician nanny neurologist novelist nurse nutritionist optician painter paralegal
    paramedic pediatrician pharmacist philosopher photographer physician physicist
    physiotherapist pianist pilot plumber poet politician postman principal producer professor
    programmer psychiatrist psychologist publisher radiologist realtor receptionist recruiter
    referee researcher roofer sailor salesperson scientist sculptor secretary singer soldier
    statistician student supervisor surgeon surveyor tailor teacher technician therapist tiler
    trainer translator tutor undertaker vegan vegetarian veterinarian vet veteran violinist
    waiter waitress welder writer zoologist
    """.split()
)

# Capitalised words that begin a sentence and are nobody's name.
NOT_NAMES = frozenset(
    """a about after again all also although always an and another any anybody anyone anything as
    at basically because before besides both but by can clearly congrats could cool currently
    did do does dude during each either else even ever every everybody everyone everything few
    finally first for from fun funny god good great guys half hardly has have he hello her
    here hers hey hi him his how however i if in is it its just last lately later life like
    love luckily mankind many maybe me men mine more most mostly much my neither never next
    nice no nobody none nonetheless not nothing now obviously of often oh ok okay on once one
    only or other others our ours people perhaps please rarely recently right same she should
    since so some somebody someone something sometimes somewhat soon still such sure suddenly
    thanks that the their theirs them then there therefore these they this those though thus
    today tomorrow tonight too two until unfortunately us was we well were what whatever when
    whenever where wherever whether which while who whoever whom whose why will with women wow
    yeah yes yesterday yet you your yours team company everywhere nowhere somewhere anywhere
    traffic work school business money time music mr mrs ms dr internet dear sir madam
    christmas easter thanksgiving halloween ramadan lunch dinner breakfast coffee food
    """.split()
) | frozenset((*MONTHS, *WEEKDAYS))

DEMONYMS = frozenset(
    """african american arab argentinian asian australian austrian belgian brazilian british
    bulgarian canadian catholic chilean chinese christian colombian croatian cuban czech
    danish dutch egyptian english estonian ethiopian european finnish french german ghanaian
    greek hindu hungarian icelandic indian indonesian iranian iraqi irish israeli italian
    jamaican japanese jewish kenyan korean latina latino lebanese lithuanian malaysian mexican
    moroccan muslim nepali nigerian norwegian pakistani persian peruvian philippine polish
    portuguese protestant romanian russian scottish serbian slovak slovenian spanish swedish
    swiss syrian taiwanese thai turkish ukrainian vietnamese welsh
    """.split()
)

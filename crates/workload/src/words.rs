//! What made-up text is made of.

/// Frequent English words; a power of two, so that random bits choose evenly.
#[rustfmt::skip]
pub(crate) const COMMON: [&str; 256] = [
    "the", "of", "and", "to", "in", "is", "that", "for", "it", "as", "was", "with", "be", "by", "on", "not", "he",
    "his", "but", "at", "are", "this", "have", "from", "or", "had", "an", "they", "which", "one", "you", "were",
    "all", "her", "she", "there", "would", "their", "we", "him", "been", "has", "when", "who", "will", "no", "more",
    "if", "out", "so", "up", "said", "what", "its", "about", "than", "into", "them", "can", "only", "other", "time",
    "new", "some", "could", "these", "two", "may", "first", "then", "do", "any", "like", "my", "now", "over", "such",
    "our", "man", "me", "even", "most", "made", "after", "also", "did", "many", "off", "before", "must", "well",
    "back", "through", "years", "much", "where", "your", "way", "down", "should", "because", "long", "each", "just",
    "state", "those", "people", "too", "little", "good", "world", "make", "very", "year", "still", "see", "own",
    "work", "men", "day", "get", "here", "between", "both", "life", "being", "under", "three", "never", "know",
    "same", "last", "another", "while", "us", "might", "great", "old", "go", "come", "since", "against", "right",
    "came", "take", "used", "himself", "few", "house", "use", "during", "without", "again", "place", "around", "home",
    "however", "small", "found", "thought", "went", "say", "part", "once", "general", "high", "upon", "school",
    "every", "does", "got", "united", "left", "number", "course", "war", "until", "always", "away", "something",
    "fact", "water", "less", "public", "put", "think", "almost", "hand", "enough", "far", "took", "head", "yet",
    "government", "system", "set", "better", "told", "nothing", "night", "end", "why", "called", "find", "going",
    "look", "asked", "later", "knew", "point", "next", "city", "give", "business", "group", "toward", "young", "days",
    "let", "room", "within", "side", "social", "present", "several", "order", "national", "second", "possible",
    "rather", "per", "face", "among", "form", "important", "often", "things", "looked", "early", "white", "case",
    "large", "big", "need", "four", "felt", "along", "children", "saw", "best", "church", "ever", "least", "power",
    "development", "thing",
];

/// Syllables of names; a power of two as well.
#[rustfmt::skip]
pub(crate) const SYLLABLES: [&str; 64] = [
    "bar", "bel", "bor", "cal", "cor", "dan", "del", "dor", "fen", "fir", "gal", "gor", "hal", "hem", "jor", "kel",
    "kim", "lan", "lor", "mar", "mel", "mir", "nal", "nor", "pel", "per", "quin", "ral", "rin", "ros", "sal", "sel",
    "sor", "tal", "tem", "tor", "val", "ven", "vor", "wil", "wen", "xan", "yor", "zel", "zan", "brin", "crav", "drel",
    "fost", "glim", "hurst", "klen", "mund", "nesk", "prak", "skol", "thal", "trug", "vost", "wick", "zorn", "blen",
    "dirk", "plov",
];

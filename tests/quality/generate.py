"""Values of a credential format, made up from its pattern: Python's own parser of regular expressions takes the pattern
apart, and each part gives some text that it matches. What the format's own check or entropy would refuse is not a value
of it and is thrown away."""
import base64
import random
import re
import re._parser as parser
import string
import zlib

TRIES = 2000
BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
USUAL = string.ascii_letters + string.digits
PRINTABLE = "".join(chr(c) for c in range(0x21, 0x7f))
JWT_HEAD = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').rstrip(b"=").decode()
SPACES = " \t"


class Maker:
    """Makes texts that a pattern matches."""

    def __init__(self, pattern, caseless, rng):
        self.parsed = parser.parse(pattern, re.I if caseless else 0)
        self.caseless = caseless
        self.rng = rng

    def text(self):
        return self._sequence(self.parsed, self.caseless)

    def _sequence(self, items, caseless):
        return "".join(self._item(kind, value, caseless) for kind, value in items)

    def _item(self, kind, value, caseless):
        name = str(kind)
        if name == "LITERAL":
            return self._cased(chr(value), caseless)
        if name == "IN":
            return self._cased(self.rng.choice(members(value)), caseless)
        if name == "NOT_LITERAL":
            return self.rng.choice(USUAL.replace(chr(value), ""))
        if name == "BRANCH":
            return self._sequence(self.rng.choice(value[1]), caseless)
        if name == "SUBPATTERN":
            _, added, _, items = value
            return self._sequence(items, caseless or bool(added & re.I))
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, items = value
            return "".join(self._sequence(items, caseless) for _ in range(self.rng.randint(least, most)))
        if name == "AT":
            return ""
        raise ValueError("the generator does not know %s" % name)

    def _cased(self, char, caseless):
        return self.rng.choice((char.lower(), char.upper())) if caseless else char


def members(parts):
    """The characters of a class; of one that excludes some, the usual ones that are left."""
    negated = str(parts[0][0]) == "NEGATE"
    chars = ""
    for kind, value in parts[1:] if negated else parts:
        name = str(kind)
        if name == "LITERAL":
            chars += chr(value)
        elif name == "RANGE":
            chars += "".join(chr(c) for c in range(value[0], value[1] + 1))
        elif name == "CATEGORY":
            chars += {"CATEGORY_DIGIT": string.digits, "CATEGORY_WORD": USUAL + "_", "CATEGORY_SPACE": SPACES}[str(value)]
        else:
            raise ValueError("the generator does not know %s in a class" % name)
    if not negated:
        return chars
    left = [c for c in USUAL if c not in chars]
    return left or [c for c in PRINTABLE if c not in chars]


# ---- checksums: the digits that make a value whole

def with_crc32(value):
    at = value.rfind("_") + 1
    number, digits = zlib.crc32(value[at:-6].encode()), ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits = BASE62[digit] + digits
    return value[:-6] + digits


def with_jwt_head(value):
    return JWT_HEAD + value[value.index("."):] if "." in value else value


def with_luhn(value):
    for last in string.digits:
        digits = [int(c) for c in value[:-1] + last if c.isdigit()][::-1]
        if (sum(digits[0::2]) + sum(sum(divmod(2 * d, 10)) for d in digits[1::2])) % 10 == 0:
            return value[:-1] + last
    return value


def with_base64_end(value):
    """The bits of the last digit that stand for no byte are 0."""
    digits = value.rstrip("=")
    loose = {2: 4, 3: 2}.get(len(digits) % 4, 0)
    alphabet = string.ascii_uppercase + string.ascii_lowercase + string.digits + ("-_" if set("-_") & set(value) else "+/")
    if not loose or digits[-1] not in alphabet:
        return value
    last = alphabet[alphabet.index(digits[-1]) >> loose << loose]
    return digits[:-1] + last + value[len(digits):]


MENDERS = {"crc32": with_crc32, "jwt": with_jwt_head, "luhn": with_luhn, "base64": with_base64_end}


def mended(entry, fmt, text):
    """The text with its value (group 1, or all of it) given the checksum that it should have."""
    match = fmt.regex.search(text.encode())
    mend = MENDERS.get(entry.get("check"))
    if not match or not mend:
        return text
    start, end = match.span(fmt.regex.groups)
    return text[:start] + mend(text[start:end]) + text[end:]


def generate(entry, fmt, count, seed):
    """Up to `count` different texts in which the format is found; fewer when its own check takes nearly all away."""
    maker = Maker(entry["pattern"], bool(entry.get("caseless")), random.Random("%s %s" % (seed, entry["id"])))
    out = []
    for _ in range(TRIES):
        if len(out) == count:
            break
        text = mended(entry, fmt, maker.text())
        if text not in out and fmt.find(b" " + text.encode() + b"\n") is not None:
            out.append(text)
    return out

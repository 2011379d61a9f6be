#!/usr/bin/python3
"""Checks the catalogue of credential formats: its form, the pattern dialect, that each sample is judged as the file
says, and that nothing in the benign corpus is taken for a secret. Prints file:line for each offence and ends with 1
when there is one. The corpus is in $CAGE_CORPORA (default: ../shared/corpora beside the tree); without it that part is skipped.

usage: catalogue_lint.py CATALOGUE"""
import base64
import binascii
import json
import math
import os
import re
import string
import sys
import zlib

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")

MAX_LENGTH = 4000
WORD = 20  # SCAN_WORD and SCAN_REST of inspectors/scan/near.h
REST = 128
ASSIGNED_LEAST = 9  # of inspectors/scan/assigned.h, as is the next
ASSIGNED_NAME = 32
KEYS = ("id", "name", "pattern", "filter", "check", "entropy", "caseless", "short", "assigned", "generic",
        "hosts", "hits", "misses")
REQUIRED = ("id", "name", "pattern", "hits", "misses")
FLAGS = ("caseless", "short", "assigned", "generic")
LISTS = ("hosts", "hits", "misses")
ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "t": "\t"}
ITEM = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|([a-z0-9.-]+))\s*(,|$)')
HOST = re.compile(r"(?:\*\.)?[a-z0-9-]+(?:\.[a-z0-9-]+)+")
WORD_CHARS = set(string.ascii_letters + string.digits + "+/_=-")
QUOTED = 4  # bytes of a quote or blank at most, as a JSON string writes it
BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase


class Wrong(Exception):
    """What is wrong with the place that is being read."""


# ---- the file ----

def unescape(text):
    def one(match):
        if match.group(1) not in ESCAPES:
            raise Wrong("\\%s is not among the escapes" % match.group(1))
        return ESCAPES[match.group(1)]
    return re.sub(r"\\(.)", one, text)


def read_list(text):
    if not (text.startswith("[") and text.endswith("]")):
        raise Wrong("a list in one line was expected")
    items, at, text = [], 0, text[1:-1]
    while at < len(text):
        item = ITEM.match(text, at)
        if not item:
            raise Wrong("neither a double-quoted string nor a host name: %.20s" % text[at:])
        items.append(item.group(2) if item.group(2) is not None else unescape(item.group(1)))
        at = item.end()
    return items


def read_value(key, text):
    if key in LISTS:
        return read_list(text)
    if key in ("pattern", "filter"):
        if not re.fullmatch(r"'(?:[^']|'')+'", text):
            raise Wrong("a pattern stands in single quotes")
        return text[1:-1].replace("''", "'")
    return text


def read_catalogue(lines, report):
    """The entries as dicts, each with the line on which it begins."""
    entries, head = [], []
    for number, line in enumerate(lines, 1):
        line = line.rstrip("\n")
        pair = re.fullmatch(r"  (  |- )([a-z]+): (.+)", line)
        if not line or re.match(r" *#", line):
            continue
        if not pair or (pair.group(1) == "  " and not entries):
            head.append(line)
            continue
        if pair.group(1) == "- ":
            entries.append({"line": number})
        key, text = pair.group(2), pair.group(3)
        try:
            if key not in KEYS or key in entries[-1]:
                raise Wrong("unknown or repeated key %s" % key)
            entries[-1][key] = read_value(key, text)
        except Wrong as wrong:
            report(number, str(wrong))
    if head != ["version: 1", "formats:"]:
        report(1, "expected 'version: 1', 'formats:' and entries, got also: %s" % head[2:][:3])
    return entries


def expand(pattern):
    """The pattern as inspectors/scan/expand.c makes it, but for a leading \\b: blanks as JSON strings write them."""
    tokens = re.findall(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", pattern, re.S)
    return "".join(r"(?:\s|\\{1,3}[nrt])" if t == r"\s" else t for t in tokens)


# ---- the pattern dialect ----

class Shape:
    """What is known of whatever a part of a pattern matches: the least and the most bytes of it, whether all are word
    characters, how many of these in a row it has at its start, at its end and anywhere at least, and how many bytes at
    most do not belong to a long word."""

    def __init__(self, least, longest, is_word, start, end, run, rest):
        self.least, self.longest, self.is_word = least, longest, is_word
        self.start, self.end, self.run, self.rest = start, end, run, rest

    @staticmethod
    def char(is_word, most=1):
        return Shape(1, 1, is_word, int(is_word), int(is_word), int(is_word), most)

    def then(self, other):
        return Shape(self.least + other.least, self.longest + other.longest, self.is_word and other.is_word,
                     self.least + other.start if self.is_word else self.start,
                     other.least + self.end if other.is_word else other.end,
                     max(self.run, other.run, self.end + other.start), self.rest + other.rest)

    def either(self, other):
        return Shape(min(self.least, other.least), max(self.longest, other.longest), self.is_word and other.is_word,
                     min(self.start, other.start), min(self.end, other.end), min(self.run, other.run),
                     max(self.rest, other.rest))

    def times(self, least, most):
        if self.is_word:
            run, longest = self.least * least, self.longest * most
            return Shape(run, longest, True, run, run, run, min(longest, WORD - 1))
        start, end, run = (self.start, self.end, self.run) if least else (0, 0, 0)
        return Shape(self.least * least, self.longest * most, False, start, end, run, self.rest * most)


NOTHING = Shape(0, 0, True, 0, 0, 0, 0)


def class_chars(body):
    """The characters of a class, or None if they are not only word characters."""
    chars = re.sub(r"(.)-(.)", lambda m: "".join(map(chr, range(ord(m.group(1)), ord(m.group(2)) + 1))), body)
    return chars if not body.startswith("^") and "\\" not in body and set(chars) <= WORD_CHARS else None


class Pattern:
    """Reads a pattern and knows the shape of what it matches. Whatever it does not know is an offence."""

    def __init__(self, text):
        self.text, self.at, self.groups, self.first = text, 0, 0, None
        self.shape = self.choice()
        self.longest = self.shape.longest
        if self.at != len(text):
            raise Wrong("unbalanced ')'")

    def peek(self, n=1):
        return self.text[self.at:self.at + n]

    def take(self, n=1):
        self.at += n
        return self.text[self.at - n:self.at]

    def choice(self):
        shape = self.sequence()
        while self.peek() == "|":
            self.take()
            shape = shape.either(self.sequence())
        return shape

    def sequence(self):
        shape = NOTHING
        while self.peek() not in ("", "|", ")"):
            at, atom = self.at, self.atom()
            self.first = atom if at == 0 else self.first
            shape = shape.then(self.repeat(atom))
        return shape

    def atom(self):
        if self.peek() == "(":
            return self.group()
        if self.peek() == "[":
            return self.char_class()
        char = self.take()
        if char == "\\":
            return self.escape()
        if char in "*+?{}^$.]" or ord(char) > 126:
            raise Wrong("'%s' is not part of the dialect here" % char)
        return Shape.char(char in WORD_CHARS, QUOTED if char == '"' else 1)

    def escape(self):
        char = self.take()
        if char == "b":
            return NOTHING
        if char in "snrt" or (char and char in string.punctuation):
            return Shape.char(char in WORD_CHARS - set("snrt"), QUOTED if char == "s" else 1)
        raise Wrong("\\%s is not part of the dialect" % char)

    def char_class(self):
        body = re.compile(r"\[\^?(?:\\[snrt\\\[\]^-]|[^\\\[\]])+\]").match(self.text, self.at)
        if not body:
            raise Wrong("a class that is not understood: %.20s" % self.text[self.at:])
        self.at = body.end()
        is_word = class_chars(body.group(0)[1:-1]) is not None
        return Shape.char(is_word, QUOTED if body.group(0) == "[\"']" else 1)

    def group(self):
        self.take()
        if self.peek() != "?":
            self.groups += 1
        elif self.peek(2) == "?:":
            self.take(2)
        elif self.peek(3) == "?i:":
            self.take(3)
        else:
            raise Wrong("(%s is not part of the dialect" % self.peek(3))
        shape = self.choice()
        if self.take() != ")":
            raise Wrong("unbalanced '('")
        return shape

    def repeat(self, atom):
        """The atom as often as it may stand."""
        least = most = 1
        if self.peek() == "?":
            self.take()
            least = 0
        elif self.peek() == "{":
            count = re.compile(r"\{(\d+)(?:,(\d+))?\}").match(self.text, self.at)
            if not count:
                raise Wrong("only {n} and {n,m} repeat")
            self.at = count.end()
            least, most = int(count.group(1)), int(count.group(2) or count.group(1))
            if most == 0 or most < least:
                raise Wrong("%s repeats nothing" % count.group(0))
        if self.peek() and self.peek() in "*+?{":
            raise Wrong("'%s' after a repeat is not part of the dialect" % self.peek())
        return atom if least == most == 1 else atom.times(least, most)


def required_literal(text):
    """The longest plain run that every match has, as lower case: a fast way to rule a file out. May be empty."""
    flat, depth = "", 0
    for piece in re.findall(r"\\.|\[\^?(?:\\.|[^\]])+\]|\((?:\?i?:)?|\)|\{[^}]*\}|.", text):
        if piece.startswith("("):
            depth += 1
        if piece in "?" or piece.startswith("{"):
            flat = flat[:-1] + "\0"
        elif depth == 0 and len(piece) == 1 and piece not in "|)":
            flat += piece
        elif depth == 0 and re.fullmatch(r"\\[^a-z0-9]", piece):
            flat += piece[1]
        else:
            flat += "\0"
        if piece == ")":
            depth -= 1
    return max(flat.split("\0"), key=len).lower().encode()


# ---- the checks on a value ----

def entropy(value):
    counts = [value.count(byte) for byte in set(value)]
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts) if value else 0.0


def check_jwt(value):
    parts = value.split(b".")
    try:
        head = json.loads(base64.urlsafe_b64decode(parts[0] + b"=" * (-len(parts[0]) % 4)))
    except ValueError:
        return False
    return len(parts) == 3 and isinstance(head, dict) and "alg" in head


def check_crc32(value):
    body = value.rsplit(b"_", 1)[-1]
    number, digits = zlib.crc32(body[:-6]), ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits = BASE62[digit] + digits
    return body[-6:] == digits.encode()


def check_luhn(value):
    digits = [byte - ord("0") for byte in value if chr(byte).isdigit()][::-1]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[1::2]]
    return (sum(digits[0::2]) + sum(doubled)) % 10 == 0


def check_base64(value):
    """Of either alphabet, padded or not; the last digit says no more than the last byte."""
    digits = value.rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/")
    try:
        whole = base64.b64decode(digits + b"=" * (-len(digits) % 4), validate=True)
    except binascii.Error:
        return False
    return base64.b64encode(whole).rstrip(b"=") == digits and (digits == value or len(value) % 4 == 0)


CHECKS = {"jwt": check_jwt, "crc32": check_crc32, "luhn": check_luhn, "base64": check_base64}


class Format:
    def __init__(self, entry):
        self.id = entry["id"]
        pattern = Pattern(entry["pattern"])
        if pattern.groups > 1:
            raise Wrong("more than one capturing group")
        if pattern.longest > MAX_LENGTH:
            raise Wrong("matches up to %d bytes, more than %d" % (pattern.longest, MAX_LENGTH))
        sought = [pattern.shape, Pattern(entry.get("filter", entry["pattern"])).shape]
        if not {"short", "assigned"} & set(entry) and not any(shape.run >= WORD and shape.rest <= REST for shape in sought):
            raise Wrong("neither pattern nor filter has a word of %d characters for sure and at most %d other bytes, so "
                        "it could be overlooked: give it a narrower filter, or short: true" % (WORD, REST))
        if "assigned" in entry:
            self.must_be_assigned(entry, pattern)
        self.regex = re.compile(expand(entry["pattern"]).encode(), re.I if entry.get("caseless") else 0)
        self.literal = required_literal(entry["pattern"])
        self.entropy = float(entry.get("entropy", 0))
        self.check = CHECKS[entry["check"]] if "check" in entry else lambda value: True

    @staticmethod
    def must_be_assigned(entry, pattern):
        if {"filter", "short"} & set(entry) or 2 ** float(entry["entropy"]) <= ASSIGNED_LEAST:
            raise Wrong("assigned: no filter, not short, and an entropy that %d characters can't have" % ASSIGNED_LEAST)
        if pattern.first.longest > ASSIGNED_NAME:
            raise Wrong("assigned: begins with the name, in a group, of at most %d bytes" % ASSIGNED_NAME)

    def find(self, text, lowered=None):
        """The first value that is a secret of this kind, or None."""
        if self.literal not in (text.lower() if lowered is None else lowered):
            return None
        for match in self.regex.finditer(text):
            value = match.group(self.regex.groups)
            if entropy(value) >= self.entropy and self.check(value):
                return value
        return None


# ---- the rules ----

def lint_entry(entry, seen):
    """What is wrong with one entry, and the format that it makes."""
    missing = [key for key in REQUIRED if not entry.get(key)]
    if missing:
        raise Wrong("lacks %s" % ", ".join(missing))
    if not re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", entry["id"]) or entry["id"] in seen:
        raise Wrong("the id is malformed or there twice")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 .,()&_/-]+", entry["name"]):
        raise Wrong("the name has a character that YAML may read as something else")
    if entry.get("check", "jwt") not in CHECKS or any(entry.get(key, "true") != "true" for key in FLAGS):
        raise Wrong("unknown check, or one of %s that is not true" % ", ".join(FLAGS))
    if not re.fullmatch(r"[0-8]\.[0-9]+", entry.get("entropy", "1.0")):
        raise Wrong("entropy is a number of bits such as 3.5")
    bad = [host for host in entry.get("hosts", ["a.b"]) if not HOST.fullmatch(host)]
    if bad or entry.get("hosts") == []:
        raise Wrong("a list of host names or \"*.domain\" was expected: %s" % bad)
    if len(set(entry["hits"])) < 2 or len(set(entry["misses"])) < 2:
        raise Wrong("needs two hits and two misses at least")
    return Format(entry)


def lint_samples(entry, fmt, report):
    for text in entry["hits"]:
        if fmt.find(text.encode()) is None:
            report(entry["line"], "%s: not found in the hit %.80r" % (fmt.id, text))
    for text in entry["misses"]:
        if fmt.find(text.encode()) is not None:
            report(entry["line"], "%s: found in the miss %.80r" % (fmt.id, text))


def lint_corpus(formats, report):
    folder = os.path.join(os.environ.get("CAGE_CORPORA", os.path.join(ROOT, "..", "shared", "corpora")), "benign")
    if not os.path.isdir(folder):
        print("catalogue_lint: no corpus in %s, benign files were NOT looked at" % folder)
        return
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            text = file.read()
        lowered = text.lower()
        for line, fmt in formats:
            if fmt.find(text, lowered) is not None:
                report(line, "%s: found in the benign file %s" % (fmt.id, name))


def main(path):
    offences = []

    def report(line, what):
        offences.append(line)
        print("%s:%d: %s" % (path, line, what))

    with open(path, encoding="ascii") as file:
        entries = read_catalogue(file, report)
    seen, formats = set(), []
    for entry in entries:
        try:
            fmt = lint_entry(entry, seen)
        except (Wrong, re.error) as wrong:
            report(entry["line"], "%s: %s" % (entry.get("id", "?"), wrong))
            continue
        seen.add(fmt.id)
        formats.append((entry["line"], fmt))
        lint_samples(entry, fmt, report)
    lint_corpus(formats, report)
    print("catalogue_lint: %d formats, %d offences" % (len(formats), len(offences)))
    return 1 if offences or not formats else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))

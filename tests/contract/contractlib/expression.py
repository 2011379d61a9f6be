"""The expressions of ARM templates: what stands between [ and ]. Parsed into tuples, which are compared, walked, and
written again:

    ("text", s)  ("number", n)  ("call", name, [args])  ("member", of, name)  ("index", of, expression)
"""
import re

TOKEN = re.compile(r"\s*(?:'((?:[^']|'')*)'|(-?\d+)|([A-Za-z_]\w*)|(.))", re.S)


class Broken(Exception):
    pass


class Parser:
    def __init__(self, text):
        self.tokens = []
        for quoted, number, name, sign in TOKEN.findall(text.strip()):
            if number:
                self.tokens.append(("number", int(number)))
            elif name:
                self.tokens.append(("name", name))
            elif sign:
                self.tokens.append(("sign", sign))
            else:
                self.tokens.append(("text", quoted.replace("''", "'")))
        self.text = text

    def take(self, kind=None, value=None):
        if not self.tokens or (kind and self.tokens[0][0] != kind) or (value and self.tokens[0][1] != value):
            raise Broken(f"{self.text!r}: expected {value or kind or 'more'} at {self.tokens[:3]}")
        return self.tokens.pop(0)

    def at(self, sign):
        return bool(self.tokens) and self.tokens[0] == ("sign", sign)

    def arguments(self):
        self.take("sign", "(")
        args = []
        while not self.at(")"):
            args.append(self.expression())
            if not self.at(")"):
                self.take("sign", ",")
        self.take("sign", ")")
        return args

    def expression(self):
        kind, value = self.take()
        if kind in ("text", "number"):
            return (kind, value)
        if kind != "name":
            raise Broken(f"{self.text!r}: {value!r} begins no expression")
        node = ("call", value, self.arguments())
        while self.at(".") or self.at("["):
            if self.take()[1] == ".":
                node = ("member", node, self.take("name")[1])
            else:
                node = ("index", node, self.expression())
                self.take("sign", "]")
        return node


def parse(text):
    """Of a string of the template that is an expression."""
    parser = Parser(text[1:-1])
    node = parser.expression()
    if parser.tokens:
        raise Broken(f"{text!r}: what is {parser.tokens} for?")
    return node


def is_expression(value):
    return isinstance(value, str) and value.startswith("[") and value.endswith("]") and not value.startswith("[[")


def write(node):
    """The one spelling of an expression."""
    kind = node[0]
    if kind == "text":
        return "'" + node[1].replace("'", "''") + "'"
    if kind == "number":
        return str(node[1])
    if kind == "call":
        return f"{node[1]}({', '.join(write(a) for a in node[2])})"
    if kind == "member":
        return f"{write(node[1])}.{node[2]}"
    return f"{write(node[1])}[{write(node[2])}]"


def calls(node):
    """Every call in it, the outer ones first."""
    if node[0] == "call":
        yield node
        for argument in node[2]:
            yield from calls(argument)
    elif node[0] in ("member", "index"):
        yield from calls(node[1])
        if node[0] == "index":
            yield from calls(node[2])


def strings(value, path=""):
    """(path, string) of every string in a piece of JSON; keys that are expressions are strings too."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if is_expression(key):
                yield f"{path}/{key}", key
            yield from strings(inner, f"{path}/{key}")
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from strings(inner, f"{path}/{i}")
    elif isinstance(value, str):
        yield path, value


def expressions(value):
    """(path, parsed) of every expression in a piece of JSON."""
    for path, text in strings(value):
        if is_expression(text):
            yield path, parse(text)

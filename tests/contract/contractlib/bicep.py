"""From Bicep to the JSON of a template, for as much of Bicep as infra/ uses: parameters with decorators, variables, resources
(also existing ones, with conditions, parents and scopes), outputs, and expressions without loops, lambdas and types. No
compiler can be had offline; where Bicep has another word than this knows, it says so with the line."""
import re

from . import expression

TOKEN = re.compile(r"(?P<space>[ \t]+|//[^\n]*)|(?P<line>\n)|(?P<text>'(?:[^'\\\n]|\\.)*')|(?P<number>\d+)|(?P<name>[A-Za-z_]\w*)|(?P<sign>==|[^\s])")
ESCAPES = {"'": "'", "\\": "\\", "n": "\n", "r": "\r", "t": "\t", "$": "$"}
SCHEMA = "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#"
NUMBERS = {"minLength", "maxLength", "minValue", "maxValue"}


class Broken(Exception):
    pass


def tokens(text):
    found, line = [], 1
    for match in TOKEN.finditer(text):
        kind = match.lastgroup
        if kind != "space":
            found.append((kind, match[0], line))
        line += match[0].count("\n")
    return found + [("line", "\n", line), ("end", "", line)]


class Reader:
    """The tree: ("text", s) ("template", pieces) ("number", n) ("word", w) ("array", items) ("object", pairs) ("call", name, args)
    ("name", n) ("member", of, name) ("if", condition, yes, no)."""

    def __init__(self, text):
        self.tokens = tokens(text)

    def fail(self, wanted):
        kind, text, line = self.tokens[0]
        raise Broken(f"line {line}: expected {wanted}, not {text!r}")

    def at(self, text):
        return self.tokens[0][0] != "text" and self.tokens[0][1] == text

    def take(self, text):
        if not self.at(text):
            self.fail(repr(text))
        return self.tokens.pop(0)[1]

    def name(self):
        if self.tokens[0][0] != "name":
            self.fail("a name")
        return self.tokens.pop(0)[1]

    def skip_lines(self):
        while self.tokens[0][0] == "line":
            self.tokens.pop(0)

    def text(self):
        if self.tokens[0][0] != "text":
            self.fail("a text")
        quoted = self.tokens.pop(0)[1][1:-1]
        pieces, plain = [], ""
        while quoted:
            if quoted.startswith("\\"):
                plain += ESCAPES[quoted[1]]
                quoted = quoted[2:]
            elif quoted.startswith("${"):
                inner, quoted = quoted[2:].split("}", 1)
                pieces += [("text", plain)] if plain else []
                pieces.append(Reader(inner).expression())
                plain = ""
            else:
                plain += quoted[0]
                quoted = quoted[1:]
        if not pieces:
            return ("text", plain)
        return ("template", pieces + ([("text", plain)] if plain else []))

    def several(self, close, one):
        found = []
        self.skip_lines()
        while not self.at(close):
            found.append(one())
            if self.at(","):
                self.take(",")
            elif not self.at(close) and self.tokens[0][0] != "line":
                self.fail(f"a new line or {close!r}")
            self.skip_lines()
        self.take(close)
        return found

    def pair(self):
        key = self.text() if self.tokens[0][0] == "text" else ("text", self.name())
        self.take(":")
        return key, self.expression()

    def primary(self):
        kind, text, _ = self.tokens[0]
        if self.at("!"):
            self.take("!")
            return ("call", "not", [self.primary()])
        if kind == "text":
            return self.text()
        if kind == "number":
            self.tokens.pop(0)
            return ("number", int(text))
        if self.at("["):
            self.take("[")
            return ("array", self.several("]", self.expression))
        if self.at("{"):
            self.take("{")
            return ("object", self.several("}", self.pair))
        name = self.name()
        if name in ("true", "false", "null"):
            return ("word", name)
        if self.at("("):
            self.take("(")
            return ("call", name, self.several(")", self.expression))
        return ("name", name)

    def expression(self):
        node = self.primary()
        while self.at(".") or self.at("!"):
            if self.tokens.pop(0)[1] == ".":
                node = ("member", node, self.name())
        if not self.at("?"):
            return node
        self.take("?")
        yes = self.expression()
        self.take(":")
        return ("if", node, yes, self.expression())

    def statements(self):
        """(decorators, what, ...) of each."""
        decorators = []
        while True:
            self.skip_lines()
            if self.tokens[0][0] == "end":
                return
            if self.at("@"):
                self.take("@")
                decorators.append(self.expression())
                continue
            yield (decorators, *self.statement())
            decorators = []
            if self.tokens[0][0] != "line":
                self.fail("the end of the line")

    def statement(self):
        what = self.name()
        if what == "targetScope":
            self.take("=")
            return what, self.text()[1]
        name = self.name()
        if what == "param":
            kind, default = self.name(), None
            if self.at("="):
                self.take("=")
                default = self.expression()
            return what, name, kind, default
        if what == "var":
            self.take("=")
            return what, name, self.expression()
        if what == "output":
            kind = self.name()
            self.take("=")
            return what, name, kind, self.expression()
        if what != "resource":
            raise Broken(f"{what} is not known here")
        kind, version = self.text()[1].split("@")
        exists, condition = self.at("existing"), None
        if exists:
            self.name()
        self.take("=")
        if self.at("if"):
            self.name()
            self.take("(")
            condition = self.expression()
            self.take(")")
        return what, name, kind, version, exists, condition, dict((k[1] if k[0] == "text" else k, v) for k, v in self.primary()[1])


class Compiler:
    def __init__(self, text):
        self.parameters, self.variables, self.resources, self.outputs = {}, {}, {}, {}
        for decorators, what, *rest in Reader(text).statements():
            if what == "param":
                self.parameters[rest[0]] = (decorators, *rest[1:])
            elif what == "var":
                self.variables[rest[0]] = rest[1]
            elif what == "output":
                self.outputs[rest[0]] = (decorators, *rest[1:])
            elif what == "resource":
                self.resources[rest[0]] = rest[1:]
            elif (what, *rest) != ("targetScope", "resourceGroup"):
                raise Broken(f"{what} {rest}")

    # ---- expressions

    def names(self, symbol):
        """The names of a resource, those of its parents first."""
        body = self.resources[symbol][4]
        own = [self.lower(body["name"])]
        return self.names(body["parent"][1]) + own if "parent" in body else own

    def id(self, symbol):
        kind, *_, body = self.resources[symbol]
        if "scope" in body:
            return ("call", "extensionResourceId", [self.id(body["scope"][1]), ("text", kind), *self.names(symbol)])
        return ("call", "resourceId", [("text", kind), *self.names(symbol)])

    def resource_member(self, symbol, name):
        if name == "id":
            return self.id(symbol)
        if name == "name":
            return self.names(symbol)[-1]
        if name == "properties":
            return ("call", "reference", [self.id(symbol), ("text", self.resources[symbol][1])])
        raise Broken(f"{symbol}.{name} is not known here")

    def lower(self, node):
        """The same as an expression of a template."""
        kind = node[0]
        if kind in ("text", "number"):
            return node
        if kind == "word":
            return ("call", node[1], [])
        if kind == "template":
            return self.lower_template(node[1])
        if kind == "array":
            return ("call", "createArray", [self.lower(n) for n in node[1]])
        if kind == "object":
            return ("call", "createObject", [self.lower(n) for pair in node[1] for n in pair])
        if kind == "call":
            return ("call", node[1], [self.lower(n) for n in node[2]])
        if kind == "if":
            return ("call", "if", [self.lower(n) for n in node[1:]])
        if kind == "member":
            if node[1][0] == "name" and node[1][1] in self.resources:
                return self.resource_member(node[1][1], node[2])
            return ("member", self.lower(node[1]), node[2])
        for of, function in ((self.parameters, "parameters"), (self.variables, "variables")):
            if node[1] in of:
                return ("call", function, [("text", node[1])])
        raise Broken(f"{node[1]} is not declared")

    def lower_template(self, pieces):
        text, values = "", []
        for piece in pieces:
            if piece[0] == "text":
                text += piece[1].replace("{", "{{").replace("}", "}}")
            else:
                text += "{%d}" % len(values)
                values.append(self.lower(piece))
        return ("call", "format", [("text", text), *values])

    def json(self, node):
        kind = node[0]
        if kind in ("text", "number"):
            return node[1]
        if kind == "word":
            return {"true": True, "false": False, "null": None}[node[1]]
        if kind == "array":
            return [self.json(n) for n in node[1]]
        if kind == "object":
            return {self.json(k): self.json(v) for k, v in node[1]}
        return f"[{expression.write(self.lower(node))}]"

    # ---- declarations

    def decorated(self, decorators, kind, made):
        for _, name, args in decorators:
            value = self.json(args[0]) if args else None
            if name == "description":
                made["metadata"] = {"description": value}
            elif name == "allowed":
                made["allowedValues"] = value
            elif name in NUMBERS:
                made[name] = value
            elif name == "secure":
                made["type"] = {"string": "secureString", "object": "secureObject"}[kind]
            else:
                raise Broken(f"@{name} is not known here")
        return made

    def parameter(self, decorators, kind, default):
        made = self.decorated(decorators, kind, {"type": kind})
        if default is not None:
            made["defaultValue"] = self.json(default)
        return made

    def used(self, node):
        """Symbols of the resources that stand in it."""
        if isinstance(node, (list, tuple)):
            if len(node) == 2 and node[0] == "name" and node[1] in self.resources:
                yield node[1]
            else:
                for inner in node:
                    yield from self.used(inner)

    def needs(self, symbol):
        """What has to be there before it: what it names. In place of one that exists, what that one is a part of."""
        found = set()
        for other in self.used(list(self.resources[symbol][4].values())):
            found |= self.needs(other) if self.resources[other][2] else {other}
        return found - {symbol}

    def resource(self, symbol):
        kind, version, _, condition, body = self.resources[symbol]
        names = self.names(symbol)
        name = names[0] if len(names) == 1 else ("call", "format", [("text", "/".join("{%d}" % i for i in range(len(names)))), *names])
        made = {"condition": self.json(condition)} if condition else {}
        made |= {"type": kind, "apiVersion": version}
        if "scope" in body:
            made["scope"] = f"[{expression.write(self.id(body['scope'][1]))}]"
        made["name"] = name[1] if name[0] == "text" else f"[{expression.write(name)}]"
        made |= {k: self.json(v) for k, v in body.items() if k not in ("name", "parent", "scope", "dependsOn")}
        needed = sorted(self.needs(symbol))
        if needed:
            made["dependsOn"] = [f"[{expression.write(self.id(n))}]" for n in needed]
        return made

    def template(self):
        return {
            "$schema": SCHEMA,
            "contentVersion": "1.0.0.0",
            "parameters": {n: self.parameter(*p) for n, p in self.parameters.items()},
            "variables": {n: self.json(v) for n, v in self.variables.items()},
            "resources": [self.resource(s) for s, r in self.resources.items() if not r[2]],
            "outputs": {n: self.decorated(d, k, {"type": k}) | {"value": self.json(v)} for n, (d, k, v) in self.outputs.items()},
        }


def compile_text(text):
    return Compiler(text).template()

"""Azure, as far as secrets are read from it: stand-ins for the service of a link that gives tokens, for the one of a tenant that does,
and for a vault. Each answers well until a test sets `answer`."""
import json
import threading

from .raw import RawOrigin
from .wire import response_bytes

TOKEN = "eyJ0eXAiOiJKV1Qi.a2V5dmF1bHQ.%d"


def json_answer(status, body, *fields):
    return response_bytes(status, json.dumps(body).encode(), [("Content-Type", "application/json"), *fields])


def error(status, code, *fields):
    return json_answer(status, {"error": {"code": code, "message": "a long text"}}, *fields)


class Service:
    """answer: bytes, or a function from a request to bytes or None; None: what `usual` says. pause: answers wait while it is set."""

    def __init__(self, leaf=None, at=("127.0.0.1", 0)):
        self.answer = None
        self.go_on = threading.Event()
        self.go_on.set()
        self.origin = RawOrigin(self.handle, leaf=leaf, at=at)

    def handle(self, conn):
        while True:
            request = conn.read_request()
            answer = self.answer(request) if callable(self.answer) else self.answer
            self.go_on.wait(20)
            conn.send(answer if answer is not None else self.usual(request))

    @property
    def requests(self):
        return self.origin.requests

    def __enter__(self):
        self.origin.__enter__()
        return self

    def __exit__(self, *args):
        self.go_on.set()
        return self.origin.__exit__(*args)


class Identity(Service):
    """Each token is another one; expires_in is a string, as the real one has it."""

    def __init__(self, leaf=None):
        super().__init__(leaf)
        self.tokens = []

    def usual(self, request):
        self.tokens.append(TOKEN % len(self.tokens))
        return json_answer(200, {"access_token": self.tokens[-1], "expires_in": "3599", "token_type": "Bearer"})

    def env(self):
        return {"AZURE_POD_IDENTITY_AUTHORITY_HOST": "http://" + self.origin.pin}


class Vault(Service):
    """values: name, or name/version, to value. Only the newest token of that identity opens it."""

    def __init__(self, leaf, identity, at=("127.0.0.1", 0), **values):
        super().__init__(leaf, at)
        self.identity = identity
        self.values = values

    def usual(self, request):
        path, _, query = request.target.partition("?")
        if request.header("authorization") != "Bearer " + self.identity.tokens[-1]:
            return error(401, "Unauthorized")
        if not path.startswith("/secrets/") or query != "api-version=7.4" or request.method != "GET":
            return error(400, "BadParameter")
        name = path[len("/secrets/"):]
        if name not in self.values:
            return error(404, "SecretNotFound")
        return json_answer(200, {"value": self.values[name], "id": "https://v.test" + path, "attributes": {"enabled": True}})

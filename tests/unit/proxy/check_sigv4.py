"""Our AWS signatures against those of botocore: requests that it has signed with a placeholder must leave the signer just as it
would have signed them with the real key. The argument is the program helper_sign_requests."""
import hashlib
import random
import subprocess
import sys
from datetime import datetime
from types import SimpleNamespace
from urllib.parse import quote

import botocore.auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

KEY_ID, REAL_ID = "AKIAPLACEHOLDER00000", "AKIDREAL000000000000"
PLACEHOLDER, REAL = "{{AWS_SECRET}}-and-some-more", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
COUNT = 600
WORDS = ["a", "b c", "%41", "x/y", "~tilde_-.", "d\u00e9j\u00e0", "(1)", "k=v", "a&b", "*", "a+b", "'q'", "$@!", ",;:", "%",
         "\U0001f600", "Z", "[]", "\"", "<>"]
SERVICES = ["s3", "dynamodb", "bedrock", "execute-api", "sts", "lambda", "s3", "es", "s3-object-lambda"]
REGIONS = ["us-east-1", "eu-central-1", "auto"]
HOSTS = ["bucket.s3.amazonaws.com", "dynamodb.eu-central-1.amazonaws.com", "127.0.0.1", "[::1]", "minio.test"]


class Clock:
    """Stands for the module datetime in botocore.auth."""
    now = datetime(2026, 1, 31, 23, 59, 58)
    datetime = SimpleNamespace(utcnow=lambda: Clock.now, strptime=datetime.strptime)


class Case:
    """A request, to be signed once with each key."""

    def __init__(self, pick):
        self.service, self.region = pick.choice(SERVICES), pick.choice(REGIONS)
        self.is_s3 = self.service.startswith("s3")
        self.method = pick.choice(["GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH"])
        self.scheme = pick.choice(["https", "https", "http"])
        self.host = pick.choice(HOSTS) + pick.choice(["", "", ":9000", ":443" if self.scheme == "https" else ":80"])
        self.path = make_path(pick, self.is_s3)
        self.presigned = pick.random() < 0.3
        self.query = make_query(pick, self.presigned)
        self.body = pick.choice([b"", b"x", b'{"a": 1}', bytes(range(256))]) if self.method in ("PUT", "POST", "PATCH") else b""
        self.fields = make_fields(pick)
        self.token = pick.choice([None, None, "session/token+with=odd/chars=="])
        self.uses_date = pick.random() < 0.2 and not self.presigned
        self.unsigned = self.is_s3 and self.scheme == "https" and pick.random() < 0.3
        self.keeps_id = pick.random() < 0.5
        Clock.now = datetime(2026, pick.randint(1, 12), pick.randint(1, 28), pick.randint(0, 23), pick.randint(0, 59), pick.randint(0, 59))
        self.now = Clock.now

    def sign(self, key_id, key):
        """The target and fields as botocore makes them."""
        Clock.now = self.now
        url = "%s://%s%s%s" % (self.scheme, self.host, self.path, "?" + self.query if self.query else "")
        request = AWSRequest(self.method, url, data=self.body)
        for name, value in self.fields:
            request.headers.add_header(name, value)
        if self.uses_date:
            request.headers["Date"] = "to be replaced"
        if self.unsigned:
            request.context["client_config"] = SimpleNamespace(s3={"payload_signing_enabled": False})
        signer = self.signer()(Credentials(key_id, key, self.token), self.service, self.region)
        if self.presigned:
            request.data = b""
        signer.add_auth(request)
        return request.url.split(self.host, 1)[1], list(request.headers.items())

    def signer(self):
        if self.presigned:
            return botocore.auth.S3SigV4QueryAuth if self.is_s3 else botocore.auth.SigV4QueryAuth
        return botocore.auth.S3SigV4Auth if self.is_s3 else botocore.auth.SigV4Auth

    def head(self, key_id, key):
        target, fields = self.sign(key_id, key)
        body = b"" if self.presigned else self.body
        lines = ["%s %s HTTP/1.1" % (self.method, target), "Host: " + self.host]
        lines += ["%s: %s" % field for field in fields]
        if body:
            lines.append("Content-Length: %d" % len(body))
        return "\r\n".join(lines + ["", ""]).encode("latin-1"), hashlib.sha256(body).hexdigest()


def make_path(pick, is_s3):
    segments = [quote(pick.choice(WORDS), safe="-_.~") for _ in range(pick.randint(0, 4))]
    if segments and pick.random() < 0.3:
        segments.insert(pick.randrange(len(segments)), "")  # "//"
    if segments and not is_s3 and pick.random() < 0.3:
        segments.insert(pick.randrange(len(segments)), pick.choice([".", "raw(x)", "a:b=c"]))
    return "/" + "/".join(segments) + pick.choice(["", "/" if segments and segments[-1] else ""])


def make_query(pick, presigned):
    """botocore makes a dictionary of the query before it signs an URL: then no name is there twice, nor without '='."""
    def text():
        return quote(pick.choice(WORDS), safe="-_.~")
    names = [text() for _ in range(pick.randint(0, 5))]
    if presigned:
        return "&".join(n + "=" + text() for n in dict.fromkeys(names))
    return "&".join(pick.choice([n, n + "=", n + "=" + text()]) for n in names)


def make_fields(pick):
    pool = [("X-Amz-Meta-Blanks", "a   b \t c"), ("x-amz-meta-two", "1"), ("X-Amz-Meta-Two", "2  2"), ("Content-Type", "text/plain;  a=b"),
            ("x-amz-target", "DynamoDB_20120810.PutItem"), ("X-Empty", ""), ("Range", "bytes=0-10"), ("user-agent", "not signed"),
            ("x-amz-acl", "private"), ("Accept", "\"quoted   blanks\"")]
    return pick.sample(pool, pick.randint(0, 5))


def fields_of(head):
    """Start line and fields in an order of their own."""
    lines = head.decode("latin-1").split("\r\n")
    return lines[0], sorted((n.lower(), v.strip()) for n, v in (line.split(":", 1) for line in lines[1:] if line))


def ask(signer, value, key_id, scheme, body_hash, head):
    signer.stdin.write(("%s\n%s\n%s\n%s\n%d\n" % (value, key_id, scheme, body_hash, len(head))).encode() + head)
    signer.stdin.flush()
    return signer.stdout.read(int(signer.stdout.readline()))


def expected(head):
    """What we send on of a head: our own Host, a path without dot segments, no port that goes without saying."""
    start, fields = fields_of(head)
    method, target, version = start.split(" ")
    path, mark, query = target.partition("?")
    path = path.replace("/./", "/")
    fields = [(n, v.rsplit(":", 1)[0] if n == "host" and v.endswith((":443", ":80")) else v) for n, v in fields]
    return "%s %s%s%s %s" % (method, path, mark, query, version), fields


def main(program):
    botocore.auth.datetime = Clock
    pick, bad, presigned = random.Random(4), 0, 0
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as signer:
        for _ in range(COUNT):
            case = Case(pick)
            head, body_hash = case.head(KEY_ID, PLACEHOLDER)
            want, _ = case.head(KEY_ID if case.keeps_id else REAL_ID, REAL)
            got = ask(signer, REAL, "" if case.keeps_id else REAL_ID, case.scheme, body_hash, head)
            presigned += case.presigned
            if fields_of(got) != expected(want):
                bad += 1
                print("sent %r\ngot %r\nwant %r\n" % (head, got, want))
        signer.stdin.close()
    print("%d requests, %d of them with the signature in the query: %d differ" % (COUNT, presigned, bad))
    return 1 if bad or signer.returncode else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

"""Secrets that sign requests or are given for tokens: what arrives is checked by somebody else's code, botocore and
openssl, with the real keys (THREATS T33, T34)."""
import base64
import hashlib
import hmac
import io
import json
import os
import socket
import subprocess
import threading
import urllib.parse

import botocore.auth
import botocore.awsrequest
import botocore.config
import botocore.credentials
import botocore.exceptions
import botocore.parsers
import botocore.session
import pytest
from cagelib.checks import refused
from cagelib.content import Watch, assert_unleaked
from cagelib.pki import openssl
from cagelib.proxy import policy, small_binary, wait_until
from cagelib.raw import RawOrigin, serving
from cagelib.wire import chunked, response_bytes

HOLD = 64 << 10
UNSIGNED = "UNSIGNED-PAYLOAD"


def sha256(data):
    return hashlib.sha256(data).hexdigest()


# ---- AWS

S3, DYNAMO, STS, STRICT, NOTE = ["%s.aws.test" % name for name in ("s3", "dynamodb", "sts", "strict", "note")]
KEY_ID, REAL_ID = "AKIAQ3EGQZ5XCAGETEST", "AKIAW5RTYU7XCAGEREAL"
REAL_KEY = "wX9/Kq2+Lr7TzVbN4mPc6sYd8hGf1jEo3uAiR5xW"
SESSION = "IQoJb3JpZ2luX2VjEH0aCXVzLWVhc3QtMSJHMEUCIQDx/+=="
NOTE_VALUE = 'n0te-"in"-the\\body-0123456789'
P_AWS, P_SESSION, P_NOTE = "{{AWS_SECRET_ACCESS_KEY}}", "{{AWS_SESSION_TOKEN}}", "{{AWS_NOTE}}"
REGION = "eu-central-1"


class Claim:
    """What a request says about its own signature."""

    def __init__(self, request):
        self.path, _, query = request.target.partition("?")
        params = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        self.in_query = "X-Amz-Signature" in params
        if self.in_query:
            self.credential, self.names = params["X-Amz-Credential"], params["X-Amz-SignedHeaders"]
            self.signature, self.time = params["X-Amz-Signature"], params["X-Amz-Date"]
        else:
            scheme, _, rest = request.header("authorization").partition(" ")
            assert scheme == "AWS4-HMAC-SHA256"
            parts = dict(part.strip().split("=", 1) for part in rest.split(","))
            self.credential, self.names, self.signature = parts["Credential"], parts["SignedHeaders"], parts["Signature"]
            self.time = request.header("x-amz-date")
        self.query = "&".join(p for p in query.split("&") if not p.startswith("X-Amz-Signature="))
        self.key_id, self.date, self.region, self.service, _ = self.credential.split("/")

    def signer(self, key):
        name = ("S3" if self.service == "s3" else "") + ("SigV4QueryAuth" if self.in_query else "SigV4Auth")
        credentials = botocore.credentials.Credentials(self.key_id, key)
        return getattr(botocore.auth, name)(credentials, self.service, self.region)


def is_signed_with(request, key):
    """Whether botocore signs what arrived, with that key, as it is signed."""
    claim = Claim(request)
    names = claim.names.split(";")
    again = botocore.awsrequest.AWSRequest(
        request.method, "https://%s%s" % (request.header("host"), claim.path + ("?" + claim.query if claim.query else "")),
        data=request.body)
    for name, value in request.fields:
        if name.lower() in names:
            again.headers.add_header(name, value)
    assert sorted(set(n.lower() for n in again.headers)) == names, "signed fields did not arrive: %s" % names
    again.context["timestamp"] = claim.time
    signer = claim.signer(key)
    text = signer.string_to_sign(again, signer.canonical_request(again))
    return signer.signature(text, again) == claim.signature


STS_ANSWER = b"""<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>
<Arn>arn:aws:iam::1:user/a</Arn><UserId>u</UserId><Account>1</Account></GetCallerIdentityResult></GetCallerIdentityResponse>"""
AWS_ANSWERS = {DYNAMO: (b'{"TableNames": ["a"]}', "application/x-amz-json-1.0"), STS: (STS_ANSWER, "text/xml")}


def play_aws(request):
    """Serves what is well signed and what is not signed at all."""
    is_signed = request.has("authorization") or "X-Amz-Signature=" in request.target
    if is_signed and not is_signed_with(request, REAL_KEY):
        return response_bytes(403, b"<Error><Code>SignatureDoesNotMatch</Code></Error>")
    body, kind = AWS_ANSWERS.get(request.header("host"), (b"an object, and " + REAL_KEY.encode(), "application/octet-stream"))
    return response_bytes(200, b"" if request.method == "PUT" else body, [("Content-Type", kind)])


@pytest.fixture(scope="module")
def aws(pki):
    with RawOrigin(serving(play_aws), leaf=pki.leaf(S3, DYNAMO, STS, STRICT, NOTE)) as running:
        yield running


@pytest.fixture(scope="module")
def aws_cage(start_module_cage, aws, pki):
    session = {"id": "session", "from": {"env": "CAGE_TEST_SESSION"}, "placeholder": P_SESSION,
               "in": ["header:x-amz-security-token", "query:X-Amz-Security-Token"]}
    secrets = [{"id": "aws", "from": {"env": "CAGE_TEST_AWS"}, "placeholder": P_AWS, "sign": "aws-sigv4"},
               {"id": "strict", "from": {"env": "CAGE_TEST_AWS"}, "placeholder": "{{STRICT_KEY}}", "require": True,
                "sign": {"aws-sigv4": {"key_id": REAL_ID}}}, session,
               {"id": "note", "from": {"env": "CAGE_TEST_NOTE"}, "placeholder": P_NOTE, "in": ["body"]}]
    rules = [{"id": "aws", "hosts": [S3, DYNAMO, STS], "secrets": ["aws", "session"], "limits": {"hold": HOLD}},
             {"id": "strict", "hosts": [STRICT], "secrets": ["strict"]},
             {"id": "note", "hosts": [NOTE], "secrets": ["aws", "note"]}]
    pins = {host: aws.pin for host in (S3, DYNAMO, STS, STRICT, NOTE)}
    allow = {rule["id"]: ["aws-access-key-id"] for rule in rules}  # these hosts are not Amazon's
    cage = start_module_cage(policy(*rules, pins=pins, trust=[pki.ca_pem], secrets=secrets,
                                    inspectors={"secrets": {"allow": allow}}),
                             env={"CAGE_TEST_AWS": REAL_KEY, "CAGE_TEST_SESSION": SESSION, "CAGE_TEST_NOTE": NOTE_VALUE})
    yield cage
    assert_unleaked(cage, REAL_KEY, SESSION, NOTE_VALUE)


@pytest.fixture(autouse=True)
def no_aws_files(monkeypatch):
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, os.devnull)


def client(cage, service, host, session=False, key=P_AWS, **s3):
    """botocore's own client, which has the placeholder for a secret key."""
    config = botocore.config.Config(proxies={"https": "http://127.0.0.1:%d" % cage.port}, retries={"max_attempts": 0},
                                    signature_version="s3v4" if service == "s3" else None, read_timeout=20,
                                    s3={"addressing_style": "path", **s3})
    return botocore.session.Session().create_client(
        service, region_name=REGION, endpoint_url="https://" + host, aws_access_key_id=KEY_ID, aws_secret_access_key=key,
        aws_session_token=P_SESSION if session else None, verify=cage.ca_pem, config=config)


def test_the_check_can_fail(aws_cage, aws):
    """The origin refuses what is signed with the placeholder."""
    client(aws_cage, "s3", S3).get_object(Bucket="b", Key="k")
    assert is_signed_with(aws.requests[-1], REAL_KEY)
    assert not is_signed_with(aws.requests[-1], P_AWS)


@pytest.mark.parametrize("key", ["plain.txt", "dir/a b+c~(1)=&?%41/d\u00e4.txt", "a//b"])
@pytest.mark.parametrize("session", [False, True])
def test_sigv4_s3_get(aws_cage, aws, key, session):
    answer = client(aws_cage, "s3", S3, session).get_object(Bucket="b", Key=key, Range="bytes=0-3")
    assert answer["Body"].read() == b"an object, and " + P_AWS.encode()
    arrived = aws.requests[-1]
    assert Claim(arrived).key_id == KEY_ID
    assert arrived.header("x-amz-security-token") == (SESSION if session else "")
    assert arrived.header("x-amz-content-sha256") == sha256(b"")
    assert "range" not in Claim(arrived).names and not arrived.has("range")  # responses to this rule come whole
    aws_cage.log.wait(event="request", path=Claim(arrived).path, injected=["aws", "session"] if session else ["aws"])


@pytest.mark.parametrize("signs_body", [True, False])
@pytest.mark.parametrize("size", [0, 1000, HOLD + 100000])
def test_sigv4_s3_put(aws_cage, aws, size, signs_body):
    """A body above the hold can't be hashed before it leaves: S3 takes it unsigned."""
    body = (b"0123456789abcdef\n" * (size // 17 + 1))[:size]
    client(aws_cage, "s3", S3, True, payload_signing_enabled=signs_body).put_object(Bucket="b", Key="k", Body=body)
    arrived = aws.requests[-1]
    assert arrived.body == body and arrived.header("x-amz-security-token") == SESSION
    assert arrived.header("x-amz-content-sha256") == (sha256(body) if signs_body and size < HOLD else UNSIGNED)


def test_sigv4_s3_query_parameters(aws_cage, aws):
    with pytest.raises(botocore.parsers.ResponseParserError):  # the answer is no listing
        client(aws_cage, "s3", S3).list_objects_v2(Bucket="b", Prefix="a b/\u00e4&=", Delimiter="/", MaxKeys=7)
    assert "prefix=a%20b%2F%C3%A4%26%3D" in aws.requests[-1].target
    assert is_signed_with(aws.requests[-1], REAL_KEY)


@pytest.mark.parametrize("method, size", [("get_object", 0), ("put_object", 50), ("put_object", HOLD * 3)])
@pytest.mark.parametrize("session", [False, True])
def test_sigv4_presigned(aws_cage, aws, method, size, session):
    url = client(aws_cage, "s3", S3, session).generate_presigned_url(method, {"Bucket": "b", "Key": "x y/z"}, 300)
    assert "X-Amz-Signature=" in url
    assert aws_cage.fetch("PUT" if size else "GET", url, body=b"x" * size).status == 200
    claim = Claim(aws.requests[-1])
    assert claim.in_query and is_signed_with(aws.requests[-1], REAL_KEY)
    sent = dict(urllib.parse.parse_qsl(aws.requests[-1].target.partition("?")[2]))
    assert sent.get("X-Amz-Security-Token") == (SESSION if session else None)
    assert sent["X-Amz-Expires"] == "300"


def test_sigv4_other_services(aws_cage, aws):
    names = client(aws_cage, "dynamodb", DYNAMO, True).list_tables(Limit=3)["TableNames"]
    assert names == ["a"] and Claim(aws.requests[-1]).service == "dynamodb"
    assert json.loads(aws.requests[-1].body) == {"Limit": 3} and aws.requests[-1].header("x-amz-security-token") == SESSION
    assert client(aws_cage, "sts", STS).get_caller_identity()["Account"] == "1"
    assert Claim(aws.requests[-1]).service == "sts" and aws.requests[-1].method == "POST"


def test_sigv4_presigned_sts(aws_cage, aws):
    """The way in which clusters are logged into."""
    url = client(aws_cage, "sts", STS, True).generate_presigned_url("get_caller_identity", {}, 60, "GET")
    assert aws_cage.fetch("GET", url).status == 200
    assert is_signed_with(aws.requests[-1], REAL_KEY)


def test_sigv4_a_body_that_is_too_large_to_sign(aws_cage, aws):
    watch = Watch(aws)
    with pytest.raises(botocore.exceptions.ClientError) as told:
        client(aws_cage, "dynamodb", DYNAMO).put_item(TableName="table", Item={"a": {"S": "x" * (2 * HOLD)}})
    assert told.value.response["ResponseMetadata"]["HTTPHeaders"]["x-cage-reason"] == "secret.slot"
    watch.assert_nothing_left()


def test_sigv4_what_is_not_signed(aws_cage, aws):
    """Goes as it is, unless a signature is required."""
    assert aws_cage.fetch("GET", "https://%s/public/x" % S3).status == 200
    assert "injected" not in aws_cage.log.wait(event="request", path="/public/x")
    watch = Watch(aws)
    refused(aws_cage.fetch("GET", "https://%s/public/x" % STRICT), "secret.slot", rule="strict")
    refused(aws_cage.fetch("GET", "https://%s/" % STRICT, [("Authorization", "Bearer mine")]), "secret.slot", rule="strict")
    watch.assert_nothing_left()


def test_sigv4_the_key_id_is_replaced(aws_cage, aws):
    for call in range(2):
        client(aws_cage, "s3", STRICT, key="{{STRICT_KEY}}").get_object(Bucket="b", Key="k%d" % call)
        assert Claim(aws.requests[-1]).key_id == REAL_ID
    url = client(aws_cage, "s3", STRICT, key="{{STRICT_KEY}}").generate_presigned_url("get_object", {"Bucket": "b", "Key": "k"})
    assert aws_cage.fetch("GET", url).status == 200
    assert Claim(aws.requests[-1]).key_id == REAL_ID


def signed_by_hand(method, url, body, declared, service="s3", fields=()):
    """The fields of a request that says that of its body, with those that are given."""
    base = botocore.auth.S3SigV4Auth if service == "s3" else botocore.auth.SigV4Auth
    request = botocore.awsrequest.AWSRequest(method, url, data=body, headers=dict(fields))

    class Signer(base):
        def payload(self, _):
            return declared

    Signer(botocore.credentials.Credentials(KEY_ID, P_AWS), service, REGION).add_auth(request)
    return list(request.headers.items())


@pytest.mark.parametrize("kind", ["STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER",
                                  "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD"])
def test_sigv4_signed_piece_by_piece(aws_cage, aws, kind):
    watch = Watch(aws)
    fields = signed_by_hand("PUT", "https://%s/b/k" % S3, b"data", kind)
    told = refused(aws_cage.fetch("PUT", "https://%s/b/k" % S3, fields, b"data"), "secret.slot", rule="aws")
    assert P_AWS not in json.dumps(told)
    watch.assert_nothing_left()


def test_sigv4_checksums_in_trailers(aws_cage, aws):
    """Newer clients send these by themselves: aws-chunked is a content coding that nobody here can read."""
    watch = Watch(aws)
    with pytest.raises(botocore.exceptions.ClientError) as told:
        client(aws_cage, "s3", S3).put_object(Bucket="b", Key="k", Body=io.BytesIO(b"streamed"), ChecksumAlgorithm="SHA256")
    assert told.value.response["ResponseMetadata"]["HTTPHeaders"]["x-cage-reason"] == "body.undecodable"
    watch.assert_nothing_left()
    kind = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
    body = b"4\r\ndata\r\n0\r\n\r\n"
    url = "https://%s/b/k" % S3
    assert aws_cage.fetch("PUT", url, signed_by_hand("PUT", url, body, kind), body).status == 200
    assert aws.requests[-1].header("x-amz-content-sha256") == kind and is_signed_with(aws.requests[-1], REAL_KEY)


def test_sigv4_over_a_body_that_changes(aws_cage, aws):
    """What is signed is what is sent, with another secret in it: hash and length."""
    url, body = "https://%s/notes" % NOTE, json.dumps({"note": P_NOTE}).encode()
    fields = signed_by_hand("POST", url, body, sha256(body), "notes",
                            [("Content-Length", str(len(body))), ("Content-Type", "application/json")])
    assert "content-length" in dict(fields)["Authorization"]
    fields = [f for f in fields if f[0] != "Content-Length"]  # fetch() writes it
    assert aws_cage.fetch("POST", url, fields, body).status == 200
    arrived = aws.requests[-1]
    assert json.loads(arrived.body) == {"note": NOTE_VALUE} and "content-length" in Claim(arrived).names
    assert arrived.header("x-amz-content-sha256") in ("", sha256(arrived.body))
    aws_cage.log.wait(event="request", path="/notes", injected=["aws", "note"])


def test_t33_the_key_itself(aws_cage, aws):
    """Neither the placeholder nor the value has a slot."""
    watch = Watch(aws)
    refused(aws_cage.fetch("GET", "https://%s/" % S3, [("Authorization", P_AWS)]), "secret.misplaced")
    refused(aws_cage.fetch("GET", "https://%s/" % S3, [("X-Note", REAL_KEY)]), "secret.leaked")
    watch.assert_nothing_left()


# ---- HMAC

HOOK, FORM = "hook.test", "form.test"
HMAC_KEY = "hm4c-key-\"with\\odd'bytes-0123456789"


def hmac_secret(name, **form):
    return {"id": name, "from": {"env": "CAGE_TEST_HMAC"}, "placeholder": "{{HMAC-%s}}" % name, "sign": {"hmac-sha256": form}}


@pytest.fixture(scope="module")
def hooks(pki):
    with RawOrigin(leaf=pki.leaf(HOOK, FORM)) as running:
        yield running


@pytest.fixture(scope="module")
def hmac_cage(start_module_cage, hooks, pki):
    secrets = [hmac_secret("hub", header="X-Hub-Signature-256", prefix="sha256=", over=["body"]),
               hmac_secret("parts", header="X-Sign", encoding="base64", joiner="|",
                           over=["method", "path", "query", "host", "header:x-time"])]
    rules = [{"id": "hook", "hosts": [HOOK], "secrets": ["hub"], "limits": {"hold": HOLD}},
             {"id": "form", "hosts": [FORM], "ports": [443, 8443], "secrets": ["parts"]}]
    cage = start_module_cage(policy(*rules, pins={HOOK: hooks.pin, FORM: hooks.pin}, trust=[pki.ca_pem], secrets=secrets),
                             env={"CAGE_TEST_HMAC": HMAC_KEY})
    yield cage
    assert_unleaked(cage, HMAC_KEY)


def mac(text):
    return hmac.new(HMAC_KEY.encode(), text, hashlib.sha256)


@pytest.mark.parametrize("body", [b"", b'{"action": "opened"}', b"x" * HOLD], ids=["none", "some", "hold"])
@pytest.mark.parametrize("fields", [[], [("x-hub-signature-256", "sha256=00"), ("X-Hub-Signature-256", "{}")]],
                         ids=["new", "replaced"])
def test_hmac_over_the_body(hmac_cage, hooks, body, fields):
    assert hmac_cage.fetch("POST", "https://%s/hook" % HOOK, fields, body).status == 200
    arrived = hooks.requests[-1]
    sums = [value for name, value in arrived.fields if name.lower() == "x-hub-signature-256"]
    assert arrived.body == body and sums == ["sha256=" + mac(body).hexdigest()]
    assert hmac_cage.log.wait(event="request", host=HOOK)["injected"] == ["hub"]


def test_hmac_over_a_chunked_body(hmac_cage, hooks):
    wire = hmac_cage.tunnel(HOOK)
    wire.request("POST", "/hook", [("Host", HOOK), ("Transfer-Encoding", "chunked")]).send(chunked(b"one", b"two"))
    assert wire.read_response().status == 200
    assert hooks.requests[-1].header("x-hub-signature-256") == "sha256=" + mac(b"onetwo").hexdigest()


def test_hmac_a_body_that_is_too_large(hmac_cage, hooks):
    watch = Watch(hooks)
    refused(hmac_cage.fetch("POST", "https://%s/hook" % HOOK, (), b"x" * (3 * HOLD)), "secret.slot", rule="hook")
    watch.assert_nothing_left()


@pytest.mark.parametrize("port", [443, 8443])
def test_hmac_over_parts(hmac_cage, hooks, port):
    authority = FORM if port == 443 else "%s:%d" % (FORM, port)
    url = "https://%s/a%%20b/c?x=1&y=%%2F" % authority
    assert hmac_cage.fetch("PUT", url, [("X-Time", "17"), ("x-time", "18")], b"zz").status == 200
    arrived = hooks.requests[-1]
    assert (arrived.target, arrived.header("host")) == ("/a%20b/c?x=1&y=%2F", authority)
    text = "PUT|/a%%20b/c|x=1&y=%%2F|%s|17,18" % authority
    assert arrived.header("x-sign") == base64.b64encode(mac(text.encode()).digest()).decode()


def test_hmac_a_part_that_is_missing(hmac_cage, hooks):
    watch = Watch(hooks)
    refused(hmac_cage.fetch("GET", "https://%s/" % FORM), "secret.slot", rule="form")
    watch.assert_nothing_left()


# ---- tokens

API, LOGIN = "api.token.test", "login.token.test"
CLIENT_SECRET = "cl1ent:s3cret/+&=%-0123456789"
P_TOKEN = "{{SERVICE_TOKEN}}"


class Service:
    """A token service that a test can hold or fail, and the API that takes its tokens."""

    def __init__(self, pki):
        leaf = pki.leaf(API, LOGIN)
        self.login = RawOrigin(serving(self.give), leaf=leaf)
        self.api = RawOrigin(serving(self.serve), leaf=leaf)
        self.life, self.answer, self.fails = 3600, None, False
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.given = []

    def give(self, _):
        self.may_answer.wait(20)
        if self.fails:
            return response_bytes(500, b"no")
        if self.answer is not None:
            return self.answer
        self.given.append("tok.%02d.%s" % (len(self.given), os.urandom(12).hex()))
        body = {"access_token": self.given[-1], "token_type": "Bearer", "expires_in": self.life}
        return response_bytes(200, json.dumps(body).encode(), [("Content-Type", "application/json")])

    @staticmethod
    def serve(request):
        """Shows the token to whoever sent it."""
        return response_bytes(200, b"you are " + request.header("authorization").encode())

    @property
    def asked(self):
        return self.login.requests

    def used(self):
        """The tokens with which the API was asked."""
        return [request.header("authorization").partition(" ")[2] for request in self.api.requests]


@pytest.fixture
def service(pki):
    running = Service(pki)
    with running.login, running.api:
        yield running
        running.may_answer.set()


@pytest.fixture
def token_cage(start_cage, service, pki):
    """A proxy with one secret; its client secret and the tokens that were given must not be in anything that it says."""
    made = []

    def start(form, value=CLIENT_SECRET, source=None, login=None, **options):
        secret = {"id": "svc", "from": source or {"env": "CAGE_TEST_CLIENT"}, "placeholder": P_TOKEN, "oauth2": form}
        rules = [{"id": "api", "hosts": [API], "secrets": ["svc"]},
                 {"id": "login", "hosts": [LOGIN], "methods": ["POST"], "paths": ["/token"]}]
        cage = start_cage(policy(*rules, pins={API: service.api.pin, LOGIN: login or service.login.pin}, trust=[pki.ca_pem],
                                 secrets=[secret]), env={} if source else {"CAGE_TEST_CLIENT": value}, **options)
        made.append((cage, value))
        return cage

    yield start
    for cage, value in made:
        assert_unleaked(cage, value, *service.given)


def credentials_form(**more):
    return {"client-credentials": {"token_url": "https://%s/token" % LOGIN, "client_id": "me & you", **more}}


def call(cage, path="/"):
    return cage.fetch("GET", "https://%s%s" % (API, path), [("Authorization", "Bearer " + P_TOKEN)])


def form_of(request):
    assert request.header("content-type") == "application/x-www-form-urlencoded"
    return dict(urllib.parse.parse_qsl(request.body.decode(), strict_parsing=True))


def assert_served(service, answer):
    """The newest token arrived, and came back as the placeholder."""
    assert answer.status == 200, answer
    assert answer.body == b"you are Bearer " + P_TOKEN.encode()
    assert service.used()[-1] == service.given[-1]


def test_client_credentials_basic(token_cage, service):
    cage = token_cage(credentials_form(scope="read write", audience="https://api/"))
    for _ in range(3):
        assert_served(service, call(cage))
    assert len(service.asked) == 1
    scheme, _, coded = service.asked[0].header("authorization").partition(" ")
    user, _, password = base64.b64decode(coded).decode().partition(":")
    assert (scheme, urllib.parse.unquote(user), urllib.parse.unquote(password)) == ("Basic", "me & you", CLIENT_SECRET)
    assert form_of(service.asked[0]) == {"grant_type": "client_credentials", "scope": "read write", "audience": "https://api/"}


def test_client_credentials_form(token_cage, service):
    assert_served(service, call(token_cage(credentials_form(auth="form"))))
    assert not service.asked[0].has("authorization")
    assert form_of(service.asked[0]) == {"grant_type": "client_credentials", "client_id": "me & you",
                                         "client_secret": CLIENT_SECRET}


def test_the_exchange_is_logged(token_cage, service):
    cage = token_cage(credentials_form())
    assert_served(service, call(cage, "/first"))
    asked = cage.log.wait(event="request", host=LOGIN)
    assert (asked["decision"], asked["rule"], asked["method"], asked["path"]) == ("allow", "login", "POST", "/token")
    assert asked["injected"] == ["svc"] and "conn" not in asked
    answered = cage.log.wait(event="response", host=LOGIN, txn=asked["txn"])
    assert (answered["decision"], answered["status"]) == ("allow", 200) and answered["bytes_in"] > 100
    served = cage.log.wait(event="request", host=API, path="/first")
    assert asked["seq"] < served["seq"] and served["injected"] == ["svc"]
    assert cage.log.wait(event="response", host=API, txn=served["txn"])["redacted"] == ["svc"]


def test_t33_a_token_on_its_way_out(token_cage, service):
    cage = token_cage(credentials_form())
    assert_served(service, call(cage))
    watch = Watch(service.api)
    for value in (service.given[0], CLIENT_SECRET):
        refused(cage.fetch("GET", "https://%s/" % API, [("Authorization", "Bearer " + value)]), "secret.leaked")
    watch.assert_nothing_left()


def test_a_request_without_the_placeholder_needs_no_token(token_cage, service):
    cage = token_cage(credentials_form())
    assert cage.fetch("GET", "https://%s/" % API).status == 200
    assert not service.asked


def test_one_exchange_for_all(token_cage, service):
    cage = token_cage(credentials_form())
    service.may_answer.clear()
    wires = [cage.tunnel(API) for _ in range(12)]
    for wire in wires:
        wire.request("GET", "/", [("Host", API), ("Authorization", "Bearer " + P_TOKEN)])
    service.login.wait(lambda origin: origin.requests)
    wires.pop().close()  # one goes away while it waits
    assert not service.api.requests
    service.may_answer.set()
    for wire in wires:
        assert wire.read_response().status == 200
    assert len(service.asked) == 1 and set(service.used()) == set(service.given)


SMALL_LIFE = 7  # seconds: with small limits the first of them alone is one in which nobody asks for another token


def small_cage(token_cage):
    """Tokens are got anew six seconds before their end, and a failure is remembered for half of one."""
    return token_cage(credentials_form(), program=small_binary())


def test_a_token_is_got_anew_before_its_end(token_cage, service):
    """No request ever waits in vain: the old one is used until the new one is there."""
    cage = small_cage(token_cage)
    service.life = SMALL_LIFE

    def goes_on():
        assert call(cage).status == 200
        return len(set(service.used())) >= 3

    wait_until(goes_on, 40, "no new token is got")
    used = list(dict.fromkeys(service.used()))
    assert used == service.given[:len(used)]
    # An old token is still known for what it is.
    refused(cage.fetch("GET", "https://%s/" % API, [("X-Note", used[-2])]), "secret.leaked")


def test_a_token_is_used_to_its_end_when_no_other_is_given(token_cage, service):
    cage = small_cage(token_cage)
    service.life = SMALL_LIFE
    assert_served(service, call(cage))
    service.fails = True
    asked = len(service.asked)
    wait_until(lambda: call(cage).status == 200 and len(service.asked) > asked, 40, "nobody asks for another")
    assert set(service.used()) == set(service.given)
    wait_until(lambda: call(cage).status == 503, 40, "the token is used for ever")
    service.fails = False
    wait_until(lambda: call(cage).status == 200, 40, "it does not come back")
    assert_served(service, call(cage))


BAD_ANSWERS = {"status": response_bytes(401, b'{"error": "invalid_client"}'), "html": response_bytes(200, b"<html>"),
               "list": response_bytes(200, b"[]"), "empty": response_bytes(200, b'{"access_token": ""}'),
               "line": response_bytes(200, b'{"access_token": "two\\r\\nlines-of-it"}'),
               "huge": response_bytes(200, b" " * 100000), "junk": b"what?\r\n\r\n",
               "cut": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"}


@pytest.mark.parametrize("bad", sorted(BAD_ANSWERS))
def test_a_service_that_gives_none(token_cage, service, bad):
    cage = small_cage(token_cage)
    service.answer = BAD_ANSWERS[bad]
    if bad == "cut":
        service.login.handler = lambda conn: conn.read_request() and conn.send(service.answer)
    answer = call(cage)
    refused(answer, "secret.unavailable", status=503, rule="api")
    assert not service.api.requests
    failed = cage.log.wait(event="response", host=LOGIN)
    assert failed["decision"] == "error"
    assert failed["reason"] in ("secret.unavailable", "upstream.malformed", "upstream.truncated")
    service.answer, service.login.handler = None, serving(service.give)
    wait_until(lambda: call(cage).status == 200, 20, "it does not come back")
    assert_served(service, call(cage))


def test_a_failure_is_remembered_for_a_while(token_cage, service):
    """With the real limits: one question, however many ask."""
    cage = token_cage(credentials_form())
    service.fails = True
    for _ in range(5):
        refused(call(cage), "secret.unavailable", status=503)
    assert len(service.asked) == 1


def test_a_service_that_is_silent(token_cage, service):
    cage = small_cage(token_cage)
    service.may_answer.clear()
    refused(call(cage), "secret.unavailable", status=503)
    assert cage.log.wait(event="response", host=LOGIN)["reason"] == "upstream.timeout"
    service.may_answer.set()
    wait_until(lambda: call(cage).status == 200, 20, "it does not come back")


def test_a_service_that_is_not_there(token_cage, service):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        cage = token_cage(credentials_form(), login="127.0.0.1:%d" % nobody.getsockname()[1])
        refused(call(cage), "secret.unavailable", status=503)
    line = cage.log.wait(host=LOGIN)
    assert (line["event"], line["decision"]) == ("request", "error")
    assert not service.api.requests


# ---- Google

@pytest.fixture(scope="module")
def account(tmp_path_factory):
    """A service account: its key file, and the public key for the test."""
    directory = tmp_path_factory.mktemp("account")
    key, public = str(directory / "key.pem"), str(directory / "public.pem")
    openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", key)
    openssl("pkey", "-in", key, "-pubout", "-out", public)
    with open(key, encoding="ascii") as file:
        pem = file.read()
    path = directory / "account.json"
    path.write_text(json.dumps({"type": "service_account", "client_email": "bot@project.test", "private_key_id": "k1",
                                "private_key": pem, "token_uri": "https://elsewhere.test/token"}, indent=2) + "\n")
    return path, public, pem


def decoded(part):
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def is_signed_rs256(jwt, public, directory):
    text, _, signature = jwt.rpartition(".")
    (directory / "text").write_text(text)
    (directory / "signature").write_bytes(decoded(signature))
    done = subprocess.run(["openssl", "dgst", "-sha256", "-verify", public, "-signature", str(directory / "signature"),
                           str(directory / "text")], capture_output=True, timeout=30)
    return done.returncode == 0


@pytest.mark.parametrize("asks", [{"scope": "https://www.googleapis.com/auth/x"}, {"audience": "https://run.test"}],
                         ids=["scope", "audience"])
def test_google_jwt(token_cage, service, account, tmp_path, asks):
    path, public, pem = account
    cage = token_cage({"google-jwt": {"token_url": "https://%s/token" % LOGIN, **asks}}, value=pem.splitlines()[3],
                      source={"file": str(path)})
    if "audience" in asks:  # then it is an id token
        service.given.append("eyJ.id.token-" + os.urandom(12).hex())
        service.answer = response_bytes(200, json.dumps({"id_token": service.given[0]}).encode())
    assert_served(service, call(cage))
    form = form_of(service.asked[0])
    assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    header, claims, _ = form["assertion"].split(".")
    assert json.loads(decoded(header)) == {"alg": "RS256", "typ": "JWT", "kid": "k1"}
    said = json.loads(decoded(claims))
    assert said.pop("exp") - said.pop("iat") == 3600
    assert said == {"iss": "bot@project.test", "aud": "https://%s/token" % LOGIN,
                    **{{"audience": "target_audience"}.get(k, k): v for k, v in asks.items()}}
    assert is_signed_rs256(form["assertion"], public, tmp_path)
    assert not is_signed_rs256(form["assertion"].replace(claims, claims[:-1] + "A"), public, tmp_path)
    assert len(service.asked) == 1

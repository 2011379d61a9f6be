"""cage-dns and its upstreams: a real authoritative server, a real one over TLS, and one that forges, keeps silent and waits.
What may not be heard is not handed on, the client is told, and the log says why."""
import contextlib
import socket
import threading

import dns.edns
import dns.message
import dns.query
import dns.rcode
import dns.rrset
import pytest

from cagelib.dns import Nsd
from cagelib.proxy import policy, wait_until
from cagelib.upstreams import Stub, Unbound, respond

SINKHOLE = "192.0.2.1"
PUBLIC, OTHER, PRIVATE = "93.184.216.34", "1.1.1.1", "10.1.2.3"
CHAIN = 12

ZONE = """\
one A {public}
one AAAA 2606:2800:220:1:248:1893:25c8:1946
alias CNAME one
twice CNAME alias
leaves CNAME host.elsewhere.test.
private A {private}
hidden CNAME private
mixed A {private}
mixed A {public}
metadata A 169.254.169.254
metadata A {public}
rule A 10.4.0.9
ring1 CNAME ring2
ring2 CNAME ring1
only4 A {public}
""".format(public=PUBLIC, private=PRIVATE)
ZONE += "".join("huge A 93.184.%d.%d\n" % (i // 100, i % 100 + 1) for i in range(110))
ZONE += "".join("chain%d CNAME chain%d\n" % (i, i + 1) for i in range(CHAIN)) + "chain%d A %s\n" % (CHAIN, PUBLIC)


@pytest.fixture(scope="module")
def nsd(tmp_path_factory):
    zones = {"ok.test": ZONE.splitlines(), "elsewhere.test": ["host A " + OTHER]}
    with Nsd(tmp_path_factory.mktemp("nsd"), zones) as running:
        yield running


def rules(*resolvers, trust=(), **more):
    return policy({"id": "inside", "hosts": ["*.ok.test"]},
                  {"id": "ranged", "hosts": ["rule.ok.test"], "addresses": ["10.4.0.0/16"]},
                  trust=trust, upstream={"resolvers": list(resolvers)}, **more)


@pytest.fixture
def asking(start_dns):
    """Starts one that asks these resolvers."""
    return lambda *resolvers, **more: start_dns(rules(*resolvers, **more))


def ask(cage, name, kind="A", tcp=False):
    query = dns.message.make_query(name, kind, use_edns=0, payload=1232)
    send = dns.query.tcp if tcp else dns.query.udp
    return send(query, "127.0.0.1", port=cage.port, timeout=15)


def texts(response):
    """The data of the answer's records, aliases included, in order."""
    return [item.to_text() for rrset in response.answer for item in rrset]


def explanation(response):
    """The reason code that the client was told."""
    return next((o.text for o in response.options if o.otype == dns.edns.EDE), None)


def assert_refused(cage, name, reason, rcode=dns.rcode.NOERROR, decision="block", told=True):
    """One line that allows the question, and one that says why the answer is not handed on."""
    response = ask(cage, name, tcp=told)  # over TCP there is room for the reason
    assert response.rcode() == rcode
    assert texts(response) == ([SINKHOLE] if rcode == dns.rcode.NOERROR else [])
    if told:
        assert explanation(response) == reason
    line = cage.log.wait(event="dns", host=name, decision=decision)
    assert (line["reason"], line["stage"], line["method"]) == (reason, "dns", "A")
    lines = cage.log.find(event="dns", host=name)
    assert [x["decision"] for x in lines] == ["allow", decision]


# ---- a real server

def test_answers(asking, nsd):
    cage = asking(nsd.address)
    assert texts(ask(cage, "one.ok.test")) == [PUBLIC]
    assert texts(ask(cage, "one.ok.test", "AAAA")) == ["2606:2800:220:1:248:1893:25c8:1946"]
    assert texts(ask(cage, "only4.ok.test", "AAAA")) == []
    missing = ask(cage, "missing.ok.test")
    assert (missing.rcode(), texts(missing)) == (dns.rcode.NXDOMAIN, [])
    assert texts(ask(cage, "twice.ok.test")) == ["alias.ok.test.", "one.ok.test.", PUBLIC]
    assert texts(ask(cage, "rule.ok.test")) == ["10.4.0.9"]


def test_long_answers(asking, nsd):
    """They come over TCP from the server, and are cut to what a client can use."""
    cage = asking(nsd.address)
    response = ask(cage, "huge.ok.test", tcp=True)
    assert 0 < len(texts(response)) <= 16
    assert set(texts(response)) <= {"93.184.%d.%d" % (i // 100, i % 100 + 1) for i in range(110)}


def test_t17_alias_that_leaves(asking, nsd):
    assert_refused(asking(nsd.address), "leaves.ok.test", "alias.not_allowed")


def test_t17_aliases_in_a_ring(asking, nsd):
    cage = asking(nsd.address)
    assert_refused(cage, "ring1.ok.test", "upstream.malformed", dns.rcode.SERVFAIL, "error")


def test_t17_long_chain(asking, nsd):
    cage = asking(nsd.address)
    assert_refused(cage, "chain0.ok.test", "upstream.malformed", dns.rcode.SERVFAIL, "error")
    assert texts(ask(cage, "chain%d.ok.test" % (CHAIN - 2)))[-1] == PUBLIC


def test_t17_t18_private_addresses(asking, nsd):
    cage = asking(nsd.address)
    for name in ("private.ok.test", "hidden.ok.test", "metadata.ok.test"):
        assert_refused(cage, name, "address.private")
    assert texts(ask(cage, "mixed.ok.test")) == [PUBLIC]


# ---- one that does as it is told

def test_t18_rebinding(asking):
    """Public at first, private once the answer's time is over."""
    answers = [PUBLIC]
    with Stub(lambda query, send: send(respond(query, *answers, ttl=1))) as stub:
        cage = asking(stub.address, dns={"ttl": {"min": "1s", "max": "1s"}})
        assert texts(ask(cage, "turns.ok.test")) == [PUBLIC]
        answers[0] = PRIVATE
        wait_until(lambda: texts(ask(cage, "turns.ok.test")) == [SINKHOLE], 10, "the old answer is kept")
        assert cage.log.wait(event="dns", host="turns.ok.test", decision="block")["reason"] == "address.private"


def wrong_case(query):
    response = bytearray(respond(query, OTHER).to_wire())
    response[13] ^= 0x20  # the first letter
    return bytes(response)


def test_forged_answers(asking):
    """From another port, with another id, to another question: nobody hears them."""
    def answer(query, send):
        send(respond(query, OTHER), stranger=True)
        forged = respond(query, OTHER)
        forged.id ^= 1
        send(forged)
        other = dns.message.make_query("x" + str(query.question[0].name), "A", id=query.id)
        send(respond(other, OTHER))
        send(respond(query, PUBLIC))
    with Stub(answer) as stub:
        cage = asking(stub.address)
        for i in range(20):
            assert texts(ask(cage, "name%d.ok.test" % i)) == [PUBLIC]


def test_forged_spelling(asking):
    """What has the right id and port but not the spelling that was sent is not an answer."""
    with Stub(lambda query, send: send(wrong_case(query))) as stub:
        cage = asking(stub.address)
        assert_refused(cage, "spelled.ok.test", "upstream.malformed", dns.rcode.SERVFAIL, "error")
        assert len(stub.asked) == 2
        assert all(x.lower() == "spelled.ok.test" for x in stub.asked)


def test_questions_are_spelled_at_random(asking):
    with Stub(lambda query, send: send(respond(query, PUBLIC))) as stub:
        cage = asking(stub.address)
        for i in range(20):
            ask(cage, "some-longer-name-%d.ok.test" % i)
        assert any(x != x.lower() for x in stub.asked) and len({x[:16] for x in stub.asked}) > 10


def test_garbage(asking):
    """Bytes that are no message are stepped over; what has the right head and nothing sound behind is an error."""
    def answer(query, send):
        send(b"")
        send(b"\0" * 11)
        whole = respond(query, PUBLIC).to_wire()
        send(whole[:-13])  # ends in the address, before the OPT record
    with Stub(answer) as stub:
        cage = asking(stub.address)
        assert_refused(cage, "garbage.ok.test", "upstream.malformed", dns.rcode.SERVFAIL, "error")


@pytest.mark.parametrize("rcode", [dns.rcode.SERVFAIL, dns.rcode.REFUSED, dns.rcode.NOTIMP, dns.rcode.FORMERR, dns.rcode.YXDOMAIN])
def test_server_fails(asking, rcode):
    with Stub(lambda query, send: send(respond(query, rcode=rcode))) as stub:
        cage = asking(stub.address)
        assert_refused(cage, "fails.ok.test", "upstream.unreachable", dns.rcode.SERVFAIL, "error")


def test_answer_to_another_question(asking):
    """Over UDP anybody could have sent it: it is passed over, and the right one waited for."""
    def answer(query, send):
        send(respond(dns.message.make_query("x" + str(query.question[0].name), "A", id=query.id), OTHER))
    with Stub(answer) as stub:
        cage = asking(stub.address)
        assert_refused(cage, "asked.ok.test", "upstream.timeout", dns.rcode.SERVFAIL, "error")


def test_silent_server(asking):
    with Stub(lambda query, send: None) as stub:
        cage = asking(stub.address)
        assert_refused(cage, "silent.ok.test", "upstream.timeout", dns.rcode.SERVFAIL, "error")
        assert len(stub.asked) > 1  # it was asked again


def test_next_server(asking, nsd):
    """One that refuses connections, and one that keeps silent, before one that answers."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        closed = "127.0.0.1:%d" % sock.getsockname()[1]
    with Stub(lambda query, send: None) as silent:
        cage = asking(closed, silent.address, nsd.address)
        assert texts(ask(cage, "one.ok.test")) == [PUBLIC]


def test_many_wait_for_one(asking):
    may_answer = threading.Event()

    def answer(query, send):
        may_answer.wait(20)
        send(respond(query, PUBLIC))
    with Stub(answer) as stub:
        cage = asking(stub.address)
        got = []
        clients = [threading.Thread(target=lambda: got.append(texts(ask(cage, "many.ok.test")))) for _ in range(20)]
        for client in clients:
            client.start()
        wait_until(lambda: len(cage.log.find(event="dns", host="many.ok.test")) == 20, 10, "not all have asked")
        may_answer.set()
        for client in clients:
            client.join(20)
        assert got == [[PUBLIC]] * 20
        assert len(stub.asked) == 1


def test_kept_answers(asking):
    """Asked once, and anew under another policy."""
    with Stub(lambda query, send: send(respond(query, PUBLIC))) as stub:
        cage = asking(stub.address)
        for _ in range(5):
            assert texts(ask(cage, "kept.ok.test")) == [PUBLIC]
        assert len(stub.asked) == 1
        cage.reload(rules(stub.address, name="other"))
        wait_until(lambda: texts(ask(cage, "kept.ok.test")) == [PUBLIC] and len(stub.asked) == 2, 10, "kept too long")


def test_kept_negative_answers(asking):
    """For as long as the zone says."""
    def answer(query, send):
        response = respond(query, rcode=dns.rcode.NXDOMAIN)
        response.authority.append(dns.rrset.from_text("ok.test.", 300, "IN", "SOA", "ns.ok.test. h.ok.test. 1 2 3 4 60"))
        send(response)
    with Stub(answer) as stub:
        cage = asking(stub.address)
        for _ in range(5):
            assert ask(cage, "missing.ok.test").rcode() == dns.rcode.NXDOMAIN
        assert len(stub.asked) == 1


# ---- over TLS

@pytest.fixture
def start_tls_server(tmp_path):
    records = ["%s.ok.test. 300 A %s" % (name, PUBLIC) for name in ("one", *("n%d" % i for i in range(50)))]
    with contextlib.ExitStack() as stack:
        def start(leaf):
            return stack.enter_context(Unbound(tmp_path / leaf.cert.replace("/", "_"), leaf, records))
        yield start


def overheard(port):
    """A UDP socket on the server's port, which hears what is asked in plain text."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", port))
    sock.setblocking(False)
    return sock


def assert_nothing_heard(sock):
    with sock, pytest.raises(BlockingIOError):
        sock.recv(1)


def test_over_tls(asking, start_tls_server, pki):
    server = start_tls_server(pki.leaf("resolver.test"))
    sock = overheard(server.port)
    cage = asking("tls://%s#resolver.test" % server.address, trust=[pki.ca_pem])
    for i in range(50):
        assert texts(ask(cage, "n%d.ok.test" % i)) == [PUBLIC]
    assert_nothing_heard(sock)


def test_over_tls_by_the_command_line(start_dns, start_tls_server, pki):
    server = start_tls_server(pki.leaf("resolver.test"))
    sock = overheard(server.port)
    allowed = policy({"id": "inside", "hosts": ["*.ok.test"]}, trust=[pki.ca_pem])
    cage = start_dns(allowed, upstream=["tls://%s#Resolver.Test" % server.address])
    assert texts(ask(cage, "one.ok.test")) == [PUBLIC]
    assert_nothing_heard(sock)


def test_over_tls_not_verified(asking, start_tls_server, pki):
    """Another name, and a certificate that nobody has signed: nothing is asked, least of all in plain text."""
    for leaf in (pki.leaf("other.test"), pki.self_signed("resolver.test")):
        server = start_tls_server(leaf)
        sock = overheard(server.port)
        cage = asking("tls://%s#resolver.test" % server.address, trust=[pki.ca_pem])
        assert_refused(cage, "one.ok.test", "upstream.unverified", dns.rcode.SERVFAIL, "error")
        assert_nothing_heard(sock)


def test_over_tls_next_server(asking, start_tls_server, pki):
    bad, good = start_tls_server(pki.leaf("other.test")), start_tls_server(pki.leaf("resolver.test"))
    sock = overheard(bad.port)
    cage = asking("tls://%s#resolver.test" % bad.address, "tls://%s#resolver.test" % good.address, trust=[pki.ca_pem])
    assert texts(ask(cage, "one.ok.test")) == [PUBLIC]
    assert_nothing_heard(sock)


def test_over_tls_server_restarts(asking, start_tls_server, pki):
    server = start_tls_server(pki.leaf("resolver.test"))
    cage = asking("tls://%s#resolver.test" % server.address, trust=[pki.ca_pem])
    assert texts(ask(cage, "n1.ok.test")) == [PUBLIC]
    server.__exit__()
    assert_refused(cage, "n2.ok.test", "upstream.unreachable", dns.rcode.SERVFAIL, "error")
    server.__enter__()
    assert texts(ask(cage, "n3.ok.test")) == [PUBLIC]

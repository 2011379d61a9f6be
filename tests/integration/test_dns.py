"""cage-dns as a whole: what its clients get, what leaves, and what the log says (THREATS T14, T15, T16, T19)."""
import contextlib
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import threading

import pytest

from cagelib import netns
from cagelib.dns import Dns, Nsd, Reply, TYPES, question
from cagelib.proxy import binary, child_named, policy, wait_until

PUBLIC, PUBLIC6 = "20.0.0.7", "2a00:1450:4001::7"
SO_NO_CHECK = 11  # of Linux; the module has no name for it
SINK, SINK6 = "192.0.2.1", "2001:db8::1"
RULES = [{"id": "site", "hosts": ["site.test", "*.site.test"]}]
ZONES = {
    "site.test": ["@ A " + PUBLIC, "api A " + PUBLIC, "api AAAA " + PUBLIC6, "v4 A " + PUBLIC, "alias CNAME api",
                  "out CNAME www.outside.test.", "private A 10.0.0.1", "meta A 169.254.169.254", "mixed A 10.0.0.1",
                  "mixed A " + PUBLIC, "loop1 CNAME loop2", "loop2 CNAME loop1",
                  *('api TXT "%02d%s"' % (i, "x" * 200) for i in range(9)), *("many A 20.0.1.%d" % i for i in range(60))],
    "outside.test": ["www A " + PUBLIC],
}


@pytest.fixture(scope="module")
def nsd(tmp_path_factory):
    with Nsd(tmp_path_factory.mktemp("nsd"), ZONES) as running:
        yield running


@pytest.fixture(scope="module")
def shared(start_module_dns, nsd):
    """One that most tests can use together."""
    return start_module_dns(policy(*RULES), upstream=[nsd.address])


def blocked(cage, name, reason, **wanted):
    """The one line about a name that was refused."""
    line = cage.log.wait(event="dns", host=name, decision="block", **wanted)
    assert line["reason"] == reason and line["enforced"] is True and line["stage"] == "dns", line
    assert len(cage.log.find(event="dns", host=name, **wanted)) == 1
    return line


# ---- what is allowed

@pytest.mark.parametrize("program", ["dig", "kdig"])
def test_an_allowed_name_is_answered(shared, program):
    answer = shared.dig("api.site.test", "A", program=program)
    assert answer.status == "NOERROR" and answer.data() == [PUBLIC], answer
    assert shared.dig("api.site.test", "AAAA", program=program).data("AAAA") == [PUBLIC6]
    line = shared.log.wait(event="dns", host="api.site.test", method="A", decision="allow")
    assert line["rule"] == "site" and line["stage"] == "dns" and "enforced" not in line, line


def test_over_tcp_too(shared):
    assert shared.dig("api.site.test", "+tcp").data() == [PUBLIC]


def test_a_name_keeps_the_letters_of_the_question(shared):
    assert "aPi.SitE.tESt." in shared.dig("aPi.SitE.tESt").text
    assert shared.log.find(event="dns", host="api.site.test")


def test_there_is_none_is_an_answer(shared):
    assert shared.dig("nothing.site.test").status == "NXDOMAIN"
    answer = shared.dig("v4.site.test", "AAAA")
    assert answer.status == "NOERROR" and answer.records == []


def test_aliases_inside_the_policy_are_followed(shared):
    answer = shared.dig("alias.site.test")
    assert ("alias.site.test", "CNAME", "api.site.test.") in answer.records and answer.data() == [PUBLIC], answer


def test_a_long_answer_is_truncated_and_whole_over_tcp(start_dns, nsd):
    cage = start_dns(policy(*RULES, dns={"types": ["TXT"]}), upstream=[nsd.address])
    for edns, room in ((False, 512), (True, 1232)):
        reply = cage.ask("api.site.test", "TXT", edns=edns)
        assert reply.truncated and len(reply.packet) <= room
    assert len(cage.dig("api.site.test", "TXT").data("TXT")) == 9  # dig asks again over TCP


def test_of_very_many_addresses_some_are_told(shared):
    assert len(shared.dig("many.site.test").data()) == 16


def test_the_second_answer_is_from_the_cache(start_dns):
    with Dns({"api.site.test": [PUBLIC]}) as upstream:
        cage = start_dns(policy(*RULES, dns={"ttl": {"min": "60s"}}), upstream=[upstream.address])
        for _ in range(3):
            assert cage.dig("api.site.test").data() == [PUBLIC]
        assert upstream.asked == ["api.site.test"]
        lines = wait_until(lambda: len(cage.log.find(event="dns")) == 3 and cage.log.find(event="dns"), 10, "three lines")
        assert [x["decision"] for x in lines] == ["allow"] * 3
        assert [x.get("address") for x in lines] == [None, PUBLIC, PUBLIC]
        assert cage.metric("cage_dns_queries_total", answered="cache") == 2


def test_many_clients_wait_for_one_question(start_dns):
    may_answer = threading.Event()
    with Dns({"api.site.test": [PUBLIC]}, may_answer) as upstream:
        cage = start_dns(policy(*RULES, dns={"ttl": {"min": "60s"}}), upstream=[upstream.address])
        with contextlib.ExitStack() as stack:
            socks = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(20)]
            for i, sock in enumerate(socks):
                sock.settimeout(10)
                sock.sendto(question("api.site.test", number=i), ("127.0.0.1", cage.port))
            wait_until(lambda: cage.metric("cage_dns_joined_total") == 19, 10, "they did not come together")
            may_answer.set()
            for i, sock in enumerate(socks):
                reply = Reply(sock.recv(4096))
                assert (reply.number, reply.rcode, reply.answers) == (i, 0, 1)
        assert upstream.asked.count("api.site.test") == 1


def test_t16_who_waits_for_an_answer_is_not_counted(start_dns):
    """One question leaves; those who find no room beside it get one line each, which does not say "allow"."""
    may_answer = threading.Event()
    with Dns({"api.site.test": [PUBLIC]}, may_answer) as upstream, contextlib.ExitStack() as stack:
        cage = start_dns(policy(*RULES, dns={"tunnel": {"rate": "2/d"}}), upstream=[upstream.address])
        socks = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(100)]
        for sock in socks:
            sock.settimeout(10)
            sock.sendto(question("api.site.test"), ("127.0.0.1", cage.port))
        wait_until(lambda: len(cage.log.find(event="dns")) == 100, 10, "a line for each")
        may_answer.set()
        assert sorted(Reply(sock.recv(4096)).rcode for sock in socks) == [0] * 64 + [2] * 36
        assert upstream.asked.count("api.site.test") == 1
        assert len(cage.log.find(event="dns", decision="allow")) == 64
        assert len(cage.log.find(event="dns", decision="error", reason="limit.connections")) == 36


def test_a_pin_is_the_answer(start_dns):
    with Dns({}) as upstream:
        cage = start_dns(policy(*RULES, pins={"api.site.test": "10.1.2.3:8443"}), upstream=[upstream.address])
        assert cage.dig("api.site.test").data() == ["10.1.2.3"]
        assert cage.dig("api.site.test", "AAAA").records == []
        assert upstream.asked == []


def test_observe_resolves_and_writes_down(start_dns):
    with Dns({"www.evil.test": [PUBLIC]}) as upstream:
        cage = start_dns(policy(*RULES, mode="observe"), upstream=[upstream.address])
        assert cage.dig("www.evil.test").data() == [PUBLIC]
        line = cage.log.wait(event="dns", host="www.evil.test")
        assert (line["decision"], line["enforced"], line["reason"]) == ("block", False, "host.not_allowed"), line


def test_parallel_questions_of_one_socket(shared):
    """As systemd-resolved does it: A and AAAA of many names at once, answers in any order."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(10)
        asked = {}
        for i, (name, kind) in enumerate((n, k) for n in ("api", "v4", "alias", "nothing") for k in ("A", "AAAA")):
            asked[i] = (name, kind)
            sock.sendto(question(name + ".site.test", kind, i), ("127.0.0.1", shared.port))
        got = {}
        while len(got) < len(asked):
            reply = Reply(sock.recv(4096))
            got[asked[reply.number]] = (reply.rcode, reply.answers)
        assert got == {("api", "A"): (0, 1), ("api", "AAAA"): (0, 1), ("v4", "A"): (0, 1), ("v4", "AAAA"): (0, 0),
                       ("alias", "A"): (0, 2), ("alias", "AAAA"): (0, 2), ("nothing", "A"): (3, 0), ("nothing", "AAAA"): (3, 0)}


# ---- T14: what is denied is never asked for

@pytest.mark.parametrize("denied, status, four, six", [
    ("sinkhole", "NOERROR", [SINK], [SINK6]), ("nxdomain", "NXDOMAIN", [], []), ("refused", "REFUSED", [], [])])
def test_t14_a_denied_name_is_answered_here(start_dns, denied, status, four, six):
    with Dns({"www.evil.test": [PUBLIC], "site.test.evil.test": [PUBLIC]}) as upstream:
        cage = start_dns(policy(*RULES, dns={"denied": denied}), upstream=[upstream.address])
        for name in ("www.evil.test", "site.test.evil.test", "notsite.test", "localhost"):
            a, aaaa = cage.dig(name), cage.dig(name, "AAAA")
            assert (a.status, a.data(), aaaa.status, aaaa.data("AAAA")) == (status, four, status, six), a
            assert "(host.not_allowed)" in a.text, a
            blocked(cage, name, "host.not_allowed", method="A")
        assert cage.dig("www.evil.test", "HTTPS").records == []
        assert upstream.asked == []


def test_t14_a_denied_name_under_an_allowed_one(start_dns):
    rules = [*RULES, {"id": "no", "action": "deny", "hosts": ["secret.site.test"]}]
    with Dns({"secret.site.test": [PUBLIC]}) as upstream:
        cage = start_dns(policy(*rules), upstream=[upstream.address])
        assert cage.dig("secret.site.test").data() == [SINK]
        assert blocked(cage, "secret.site.test", "rule.denied")["rule"] == "no"
        assert upstream.asked == []


# ---- T15: the same over each of our entrances

def test_t15_tcp_and_ipv6_are_no_way_around(start_dns):
    with Dns({"www.evil.test": [PUBLIC]}) as upstream:
        cage = start_dns(policy(*RULES), listen=["127.0.0.1:0", "[::1]:0"], upstream=[upstream.address])
        port = cage.listening[1].rsplit(":", 1)[1]
        for extra in (["+tcp"], ["@::1", "-p", port], ["@::1", "-p", port, "+tcp"]):
            assert cage.dig("www.evil.test", *extra).data() == [SINK]
        wait_until(lambda: len(cage.log.find(event="dns", reason="host.not_allowed", host="www.evil.test")) == 3, 10, "lines")
        assert upstream.asked == []


def test_both_families_on_one_port(start_dns):
    with Dns({"api.site.test": [PUBLIC]}) as upstream, socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
        probe.bind(("::", 0))
        port = probe.getsockname()[1]
        probe.close()
        where = ["0.0.0.0:%d" % port, "[::]:%d" % port]
        cage = start_dns(policy(*RULES), listen=where, upstream=[upstream.address])
        for at in ("127.0.0.1", "::1"):
            for extra in ([], ["+tcp"]):
                assert cage.dig("api.site.test", "@" + at, *extra).data() == [PUBLIC]


def test_sockets_can_be_given(start_dns):
    with contextlib.ExitStack() as stack:
        upstream = stack.enter_context(Dns({"api.site.test": [PUBLIC]}))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        tcp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
        udp.bind(("127.0.0.1", 0))
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        cage = start_dns(policy(*RULES), listen=["fd:%d" % udp.fileno(), "fd:%d" % tcp.fileno()], upstream=[upstream.address],
                         pass_fds=(udp.fileno(), tcp.fileno()))
        for sock, extra in ((udp, []), (tcp, ["+tcp"])):
            assert cage.dig("api.site.test", "-p", str(sock.getsockname()[1]), *extra).data() == [PUBLIC]


def test_answers_leave_alone_where_trains_are_refused(start_dns):
    """A socket without checksums is one for which the kernel makes no packets of a train."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        udp.setsockopt(socket.SOL_SOCKET, SO_NO_CHECK, 1)
        udp.bind(("127.0.0.1", 0))
        client.settimeout(20)
        for ident in range(100):  # they are there before anybody reads
            client.sendto(question("n%03d.other.test" % ident, number=ident), udp.getsockname())
        start_dns(policy(*RULES), listen=["fd:%d" % udp.fileno()], pass_fds=(udp.fileno(),))
        assert {struct.unpack(">H", client.recv(512)[:2])[0] for _ in range(100)} == set(range(100))


# ---- T16, T33: names that carry something

def test_t16_a_long_random_label_does_not_leave(start_dns):
    name = "q7x2kd93hf8s0a1zmw5n6b4v" * 2 + ".site.test"
    with Dns({name: [PUBLIC]}) as upstream:
        cage = start_dns(policy(*RULES), upstream=[upstream.address])
        answer = cage.dig(name)
        assert answer.data() == [SINK] and ("(name.suspicious)" in answer.text or "(encoded.blob)" in answer.text), answer
        line = cage.log.wait(event="dns", decision="block")
        assert line["reason"] in ("name.suspicious", "encoded.blob") and line["rule"] == "site", line
        assert upstream.asked == []


def test_t16_too_many_questions_under_one_domain(start_dns):
    with Dns({"n%d.site.test" % i: [PUBLIC] for i in range(30)}) as upstream:
        cage = start_dns(policy(*RULES, dns={"tunnel": {"rate": "10/m"}}), upstream=[upstream.address])
        replies = [cage.ask("n%d.site.test" % i).rcode for i in range(30)]
        assert replies[:10] == [0] * 10 and replies[10:] == [5] * 20
        assert len(set(upstream.asked)) == 10
        assert cage.log.wait(event="dns", reason="limit.rate")["decision"] == "block"


def test_t16_listed_names_are_counted_too(start_dns):
    names = ["n%d.one.test" % i for i in range(6)]
    with Dns({name: [PUBLIC] for name in names}) as upstream:
        cage = start_dns(policy({"id": "one", "hosts": names}, dns={"tunnel": {"rate": "4/d"}}), upstream=[upstream.address])
        assert [cage.ask(name).rcode for name in names] == [0] * 4 + [5] * 2
        assert len(upstream.asked) == 4
        assert cage.log.wait(event="dns", reason="limit.rate")["host"] == names[4]


def test_t16_a_refused_answer_does_not_leave_each_time(start_dns):
    """Who serves the name could read the times at which it is asked for."""
    with Dns({"private.one.test": ["10.0.0.1"]}) as upstream:
        cage = start_dns(policy({"id": "one", "hosts": ["private.one.test"]}), upstream=[upstream.address])
        for _ in range(50):
            assert cage.ask("private.one.test").rcode == 0
        assert len(upstream.asked) < 25
        wait_until(lambda: len(cage.log.find(event="dns", reason="address.private")) == 50, 10, "a line each")


# ---- T17, T18: answers

@pytest.mark.parametrize("name, reason", [
    ("private", "address.private"), ("meta", "address.private"), ("out", "alias.not_allowed")])
def test_t17_an_answer_that_may_not_be_heard(shared, name, reason):
    answer = shared.dig(name + ".site.test")
    assert answer.data() == [SINK] and "(%s)" % reason in answer.text, answer
    line = blocked_after(shared, name + ".site.test", reason)
    assert line["rule"] == "site"


def blocked_after(cage, name, reason):
    """The second line, about the answer to what was allowed."""
    line = cage.log.wait(event="dns", host=name, reason=reason, decision="block")
    first = cage.log.wait(event="dns", host=name, txn=line["txn"], decision="allow")
    assert first["seq"] < line["seq"] and line["enforced"] is True
    return line


def test_t17_aliases_may_be_let_out_but_not_to_what_is_denied(start_dns, nsd):
    cage = start_dns(policy(*RULES, dns={"aliases": "any"}), upstream=[nsd.address])
    assert PUBLIC in cage.dig("out.site.test").data()
    assert cage.dig("www.outside.test").data() == [SINK]
    deny = {"id": "no", "action": "deny", "hosts": ["*.outside.test"]}
    strict = start_dns(policy(*RULES, deny, dns={"aliases": "any"}), upstream=[nsd.address])
    assert strict.dig("out.site.test").data() == [SINK]
    blocked_after(strict, "out.site.test", "alias.not_allowed")


def test_t18_private_addresses_are_taken_out(shared):
    assert shared.dig("mixed.site.test").data() == [PUBLIC]


def test_t17_aliases_in_a_circle(shared):
    assert shared.dig("loop1.site.test").status == "SERVFAIL"
    line = shared.log.wait(event="dns", host="loop1.site.test", decision="error")
    assert line["reason"] == "upstream.malformed", line


# ---- T19: types, classes and packets

@pytest.mark.parametrize("kind", ["TXT", "ANY", "NULL", "AXFR", "IXFR", 65280])
def test_t19_other_types_are_refused(start_dns, kind):
    with Dns({"api.site.test": [PUBLIC]}) as upstream:
        cage = start_dns(policy(*RULES), upstream=[upstream.address])
        reply = cage.ask("api.site.test", kind)
        assert (reply.rcode, reply.answers) == (5, 0) and b"query.type" in reply.packet
        line = cage.log.wait(event="dns", host="api.site.test")
        text = kind if kind in TYPES and kind != "NULL" else line["method"]
        assert (line["decision"], line["reason"], line["method"]) == ("block", "query.type", text), line
        assert upstream.asked == []


def test_t19_chaos_is_refused(shared):
    reply = shared.ask("version.bind", "TXT", klass=3)
    assert (reply.rcode, reply.answers) == (5, 0)
    blocked(shared, "version.bind", "query.type")


@pytest.mark.parametrize("kind", ["HTTPS", "SVCB"])
def test_t19_service_records_are_answered_without_one(start_dns, kind):
    with Dns({"api.site.test": [PUBLIC]}) as upstream:
        cage = start_dns(policy(*RULES), upstream=[upstream.address])
        reply = cage.ask("api.site.test", kind)
        assert (reply.rcode, reply.answers) == (0, 0)
        assert cage.log.wait(event="dns", host="api.site.test")["decision"] == "allow"
        assert upstream.asked == []


def test_t19_a_listed_type_is_resolved(start_dns, nsd):
    cage = start_dns(policy(*RULES, dns={"types": ["TXT"]}), upstream=[nsd.address])
    assert cage.dig("api.site.test", "TXT").data("TXT")[0].startswith('"00xxx')
    assert cage.dig("api.evil.test", "TXT").records == []


def test_t19_bytes_in_labels_are_refused(shared):
    reply = shared.ask("a\x00b\xff.site.test")
    assert (reply.rcode, reply.answers) == (5, 0)
    assert shared.log.wait(event="dns", host="a?b?.site.test")["reason"] == "name.suspicious"


def test_t19_a_broken_query_is_answered_as_such(shared):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(10)
        sock.sendto(question("api.site.test", edns=False) + b"more", ("127.0.0.1", shared.port))
        reply = Reply(sock.recv(4096))
        assert reply.rcode == 1 and len(reply.packet) <= 12 + 19 + 4
    assert shared.log.wait(event="dns", reason="query.malformed")["decision"] == "block"


# ---- failing upstreams

def test_an_upstream_that_is_not_there(start_dns):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        where = "127.0.0.1:%d" % taken.getsockname()[1]
    cage = start_dns(policy(*RULES), upstream=[where])
    assert cage.dig("api.site.test").status == "SERVFAIL"
    line = cage.log.wait(event="dns", decision="error")
    assert line["reason"] in ("upstream.unreachable", "upstream.timeout") and line["ms"]["total"] >= 0, line


# ---- reload, drain, death, log

def test_a_reload_holds_for_the_next_question(start_dns):
    with Dns({"api.site.test": [PUBLIC], "www.new.test": [PUBLIC]}) as upstream:
        cage = start_dns(policy(*RULES), upstream=[upstream.address])
        assert cage.dig("api.site.test").data() == [PUBLIC]
        cage.reload(policy({"id": "new", "hosts": ["www.new.test"]}))
        wait_until(lambda: cage.dig("www.new.test").data() == [PUBLIC], 10, "the new policy does not hold")
        assert cage.dig("api.site.test").data() == [SINK]
        cage.reload("version: 1\nname: [", reason="policy.rejected")
        assert cage.dig("www.new.test").data() == [PUBLIC]


@pytest.mark.parametrize("new, expected", [(RULES, PUBLIC), ([{"id": "new", "hosts": ["www.new.test"]}], SINK)])
def test_who_waits_during_a_reload_is_decided_anew(start_dns, new, expected):
    may_answer = threading.Event()
    with Dns({"api.site.test": [PUBLIC]}, may_answer) as upstream, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        cage = start_dns(policy(*RULES), upstream=[upstream.address])
        sock.settimeout(10)
        sock.sendto(question("api.site.test"), ("127.0.0.1", cage.port))
        wait_until(lambda: upstream.asked, 10, "it was not asked")
        cage.reload(policy(*new))
        wait_until(lambda: cage.admin("/readyz").status == 200 and
                   len(cage.log.find(event="dns", host="api.site.test", gen=2)) == 1, 10, "no decision under the new policy")
        may_answer.set()
        assert socket.inet_aton(expected) in sock.recv(4096)


def test_questions_under_way_are_answered_before_the_end(start_dns):
    may_answer = threading.Event()
    with Dns({"api.site.test": [PUBLIC]}, may_answer) as upstream, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        cage = start_dns(policy(*RULES), upstream=[upstream.address])
        sock.settimeout(10)
        sock.sendto(question("api.site.test"), ("127.0.0.1", cage.port))
        wait_until(lambda: upstream.asked, 10, "it was not asked")
        cage.signal(signal.SIGTERM)
        wait_until(lambda: refuses(cage.port), 10, "it still listens")
        may_answer.set()
        assert socket.inet_aton(PUBLIC) in sock.recv(4096)
        assert cage.process.wait(15) == 0


def refuses(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return False
    except ConnectionRefusedError:
        return True


def test_a_killed_worker_is_replaced(start_dns):
    with Dns({"api.site.test": [PUBLIC]}) as upstream:
        cage = start_dns(policy(*RULES), upstream=[upstream.address])
        cage.expect_deaths = True
        assert cage.dig("api.site.test").data() == [PUBLIC]
        os.kill(child_named(cage, "cage-dns-worker"), signal.SIGKILL)
        cage.stderr.wait(r"the worker .* was killed by signal 9", 10)
        assert cage.dig("api.site.test").data() == [PUBLIC]  # the socket stays open meanwhile
        assert cage.dig("www.evil.test").data() == [SINK]


def test_a_killed_log_writer_is_replaced(start_dns):
    with Dns({"api.site.test": [PUBLIC]}) as upstream:
        cage = start_dns(policy(*RULES), upstream=[upstream.address])
        cage.expect_deaths = True
        os.kill(child_named(cage, "cage-log"), signal.SIGKILL)
        cage.stderr.wait(r"the log writer .* was killed by signal 9", 10)
        wait_until(lambda: cage.admin("/readyz").status == 200, 10, "it is not ready again")
        assert cage.dig("api.site.test").data() == [PUBLIC]
        assert cage.log.wait(event="dns", host="api.site.test")["decision"] == "allow"


def test_no_log_no_answer(start_dns):
    with Dns({"api.site.test": [PUBLIC]}) as upstream:
        cage = start_dns(policy(*RULES), upstream=[upstream.address], limit_file_size=True)
        writer = child_named(cage, "cage-log")
        size = os.path.getsize(cage.log.path)
        subprocess.run(["prlimit", "--pid", str(writer), "--fsize=%d:%d" % (size, size + (1 << 30))], check=True)
        cage.dig("www.evil.test")  # fills the writer's hands
        cage.stderr.wait(r"no traffic until it can be written", 10)
        asked = len(upstream.asked)
        for name in ("api.site.test", "www.evil.test"):
            answer = cage.dig(name)
            assert answer.status == "SERVFAIL" and "(log.unavailable)" in answer.text, answer
        assert len(upstream.asked) == asked == 0
        assert cage.admin("/readyz").status == 503
        subprocess.run(["prlimit", "--pid", str(writer), "--fsize=%d:%d" % (1 << 30, 1 << 30)], check=True)
        wait_until(lambda: cage.admin("/readyz").status == 200, 10, "the log does not come back")
        assert cage.dig("api.site.test").data() == [PUBLIC]


def test_the_log_is_opened_anew(start_dns):
    with Dns({}) as upstream:
        cage = start_dns(policy(*RULES), upstream=[upstream.address])
        os.rename(cage.log.path, cage.log.path + ".1")
        cage.signal(signal.SIGUSR1)
        wait_until(lambda: os.path.exists(cage.log.path), 10, "no new file")
        cage.dig("www.evil.test")
        cage.log.wait(event="dns", host="www.evil.test")
        os.rename(cage.log.path, cage.log.path + ".2")
        with open(cage.log.path, "wb") as whole:  # the checks at the end want the chain from its first line
            for part in (".1", ".2"):
                with open(cage.log.path + part, "rb") as f:
                    whole.write(f.read())
        start_dns.forget(cage)
        assert cage.stop() == 0


def test_the_log_turns(start_dns):
    """Another one is begun in its place, nothing is refused meanwhile, and the chain goes on."""
    with Dns({}) as upstream, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        cage = start_dns(policy(*RULES), "--log-turn", str(1 << 20), upstream=[upstream.address])
        old = cage.log.path + ".old"
        def has_written(word):
            return any(word in pathlib.Path(p).read_text() for p in (old, cage.log.path) if os.path.exists(p))
        for number in range(100):
            for _ in range(100):
                assert cage.ask("%s.evil.test" % ("x" * 60), sock=sock, number=number).rcode == 0
            assert cage.dig("n%d.evil.test" % number).data() == [SINK]
            wait_until(lambda: has_written("n%d.evil.test" % number), 20, "the writer does not keep up")  # so that it turns once
            if os.path.exists(old):
                break
        assert os.path.getsize(old) <= 1 << 20
        assert cage.dig("last.evil.test").data() == [SINK]
        cage.log.wait(event="dns", host="last.evil.test")
        assert os.path.getsize(cage.log.path) < 1 << 19 and cage.admin("/readyz").status == 200
        with open(old, "rb") as first, open(cage.log.path, "rb") as second:  # the checks at the end want the chain from its first line
            whole = first.read() + second.read()
        start_dns.forget(cage)
        assert cage.stop() == 0 and b"log.unavailable" not in whole
        lines = [json.loads(line) for line in whole.splitlines()]
        assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1)) and all(a["hash"] == b["prev"] for a, b in zip(lines, lines[1:]))


# ---- usage

@pytest.mark.parametrize("args, what", [
    (["--listen", "unix:/tmp/x"], "--listen"), (["--upstream", "resolver.test"], "--upstream"), (["--upstream", "[::1]:0"], "--upstream"),
    (["--upstream", "tls://127.0.0.1"], "--upstream"), (["--upstream", "tls://127.0.0.1#"], "--upstream"),
    (["--log-turn", "1048575"], "--log-turn: expected"), (["--log-turn", "1M"], "--log-turn: expected"), (["--sandbox", "a b"], "--sandbox"), (["--nothing"], "--help"), (["word"], "is not an option")])
def test_wrong_usage(tmp_path, args, what):
    path = tmp_path / "policy.yaml"
    path.write_text("version: 1\nname: x\n")
    done = subprocess.run([binary("cage-dns"), "--policy", str(path), *args], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2 and what in done.stderr


def test_check_and_help(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text("version: 1\nname: x\ntests:\n  - {dns: www.evil.test, expect: deny}\n")
    done = subprocess.run([binary("cage-dns"), "--policy", str(path), "--check"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0 and "is good" in done.stdout, done
    path.write_text("version: 1\nname: x\ntests:\n  - {dns: www.evil.test, expect: allow}\n")
    done = subprocess.run([binary("cage-dns"), "--policy", str(path), "--check"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2 and "tests[0]" in done.stderr, done
    path.write_text("version: 1\nname: x\ndns: {mode: synthetic}\n")
    done = subprocess.run([binary("cage-dns"), "--policy", str(path), "--check"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2 and "synthetic needs --bindings" in done.stderr, done
    done = subprocess.run([binary("cage-dns"), "--help"], capture_output=True, text=True, timeout=30)
    for word in ("--policy", "--listen", "--upstream", "--admin", "--log", "--log-turn", "--sandbox", "--check", "SIGHUP"):
        assert word in done.stdout


def test_resolvers_are_refused_beyond_the_eighth(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text("version: 1\nname: x\nupstream: {resolvers: [%s]}\n" % ", ".join("192.0.2.%d" % i for i in range(1, 8)))
    command = [binary("cage-dns"), "--policy", str(path), "--check", "--upstream", "192.0.2.9:53"]
    assert subprocess.run(command, capture_output=True, text=True, timeout=30).returncode == 0
    done = subprocess.run([*command, "--upstream", "192.0.2.10:53"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2 and "at most 8 resolvers, those of --upstream included" in done.stderr, done


@pytest.mark.parametrize("resolver, upstream, good", [
    ("127.0.0.1", "127.0.0.2", True), ("tls://127.0.0.1#r.test", "tls://127.0.0.2:8853#r.test", True),
    ("tls://127.0.0.1#r.test", "127.0.0.2", False), ("127.0.0.1", "tls://::1#r.test", False)])
def test_resolvers_are_over_tls_all_or_none(tmp_path, resolver, upstream, good):
    path = tmp_path / "policy.yaml"
    path.write_text('version: 1\nname: x\nupstream: {resolvers: ["%s"]}\n' % resolver)
    done = subprocess.run([binary("cage-dns"), "--policy", str(path), "--upstream", upstream, "--check"], capture_output=True,
                          text=True, timeout=30)
    assert (done.returncode, "over TLS or none" in done.stderr) == ((0, False) if good else (2, True)), done


def test_it_never_asks_itself(start_dns, tmp_path):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        where = "127.0.0.1:%d" % probe.getsockname()[1]
    with pytest.raises(AssertionError, match="listener of cage-dns itself"):
        start_dns(policy(*RULES), listen=[where], upstream=[where])


# ---- where others than loopback are

@pytest.fixture
def outside():
    with netns.or_skip("10.9.9.1/32", "10.9.9.2/32"):
        yield


def test_t19_a_flood_is_seen(outside, start_dns):
    """Beyond the rate nothing is answered or logged one by one, but that it happens is told, and how often."""
    cage = start_dns(policy(*RULES), listen=["10.9.9.1:0"])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("10.9.9.2", 0))

        def flood():
            for i in range(500):
                sock.sendto(question("www.evil.test", number=i), ("10.9.9.1", cage.port))
            return cage.log.find(event="dns", reason="limit.rate")

        wait_until(flood, 60, "nothing is said about the rate")
    line = cage.log.find(event="dns", reason="limit.rate")[0]
    assert line["decision"] == "block" and line["enforced"] is True and "host" not in line, line
    wait_until(lambda: cage.metric("cage_dns_udp_lost_total", why="limited") > 1, 10, "it is not counted")
    assert cage.metric("cage_dns_received_total", over="udp") >= 2000
    # one for each second, not one for each query
    assert len(cage.log.find(event="dns", reason="limit.rate")) < cage.metric("cage_dns_udp_lost_total", why="limited") / 5


def test_the_resolver_of_the_system_may_not_be_itself(outside, tmp_path):
    resolv, rules = tmp_path / "resolv.conf", tmp_path / "policy.yaml"
    resolv.write_text("nameserver 127.0.0.1\n")
    rules.write_text("version: 1\nname: x\n")
    command = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec "$@"', str(resolv), "timeout", "20",
               binary("cage-dns"), "--policy", str(rules), "--admin", "off", "--ca-dir", str(tmp_path / "ca"), "--log",
               str(tmp_path / "log"), "--listen", "127.0.0.1:53"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, done
    assert "resolv.conf" in done.stderr and "listener of cage-dns itself" in done.stderr, done

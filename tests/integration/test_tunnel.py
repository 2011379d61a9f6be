"""Tunnel rules: opaque bytes both ways, counted, and logged as uninspected."""
import socket
import ssl

import pytest
from cagelib.checks import logged_block, refused, upstream_failed
from cagelib.proxy import policy
from cagelib.raw import RawOrigin
from cagelib.wire import Truncated

HOST = "t.test:2222"


@pytest.fixture
def tunnel(start_cage):
    """tunnel(handler) gives a proxy whose rule `ssh` leads to an origin with that handler."""
    origins = []

    def build(handler, **origin_options):
        origin = RawOrigin(handler, **origin_options)
        origins.append(origin)
        rules = [{"id": "ssh", "action": "tunnel", "hosts": ["t.test"], "ports": [2222]}, {"id": "web", "hosts": ["t.test", "w.test"]}]
        return start_cage(policy(*rules, pins={"t.test": origin.pin, "w.test": origin.pin})), origin

    yield build
    for origin in origins:
        origin.stop()


def result_of(cage):
    """The two lines of the tunnel."""
    opened = cage.log.wait(event="connect", host="t.test", reason="tunnel.uninspected")
    assert (opened["decision"], opened["rule"], opened["port"]) == ("allow", "ssh", 2222)
    return opened, cage.log.wait(event="response", conn=opened["conn"], txn=opened["txn"])


def test_bytes_go_both_ways_and_are_counted(tunnel):
    def echo(conn):
        while conn._more():
            conn.send(conn._take(len(conn.buffer)))

    cage, origin = tunnel(echo)
    wire, answer = cage.ask_connect(HOST)
    assert answer.status == 200
    data = bytes(range(256)) * 4096
    wire.send(data[:5])
    assert wire.read_exact(5) == data[:5]
    wire.sock.settimeout(30)
    for at in range(5, len(data), 65536):
        wire.send(data[at:at + 65536])
        wire.read_exact(len(data[at:at + 65536]))
    wire.end()
    assert wire.read_to_end() == b""
    assert origin.received == data
    _, result = result_of(cage)
    assert (result["bytes_out"], result["bytes_in"]) == (len(data), len(data))
    assert (result["inspected_out"], result["inspected_in"]) == (0, 0)
    assert cage.metric("cage_bytes_total", direction="out", inspected="false") == len(data)


def test_the_server_may_speak_first(tunnel):
    cage, _ = tunnel(lambda conn: conn.send(b"SSH-2.0-test\r\n"))
    wire, _ = cage.ask_connect(HOST)
    assert wire.read_to_end() == b"SSH-2.0-test\r\n"


def test_half_close_by_the_client(tunnel):
    def reply_at_end(conn):
        got = conn.read_to_end()
        conn.send(b"got %d" % len(got))

    cage, _ = tunnel(reply_at_end)
    wire, _ = cage.ask_connect(HOST)
    wire.send(b"x" * 100000).end()
    assert wire.read_to_end() == b"got 100000"
    _, result = result_of(cage)
    assert (result["bytes_out"], result["bytes_in"]) == (100000, 10)


def test_half_close_by_the_server(tunnel):
    def end_then_read(conn):
        conn.send(b"bye")
        conn.sock.shutdown(socket.SHUT_WR)
        conn.read_to_end()

    cage, origin = tunnel(end_then_read)
    wire, _ = cage.ask_connect(HOST)
    assert wire.read_to_end() == b"bye"
    wire.send(b"still heard").end()
    origin.wait(lambda o: o.received == b"still heard")
    result_of(cage)


def test_a_reset_ends_both_sides(tunnel):
    cage, origin = tunnel(lambda conn: conn.read_to_end())
    wire, _ = cage.ask_connect(HOST)
    wire.send(b"abc")
    origin.wait(lambda o: o.received == b"abc")
    wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    wire.close()
    result_of(cage)


def test_tls_in_a_tunnel_is_end_to_end(tunnel, pki):
    cage, _ = tunnel(None, leaf=pki.leaf("t.test"))
    wire, _ = cage.ask_connect(HOST)
    cage.start_tls(wire, "t.test", ssl.create_default_context(cafile=pki.ca_pem))
    assert wire.exchange("GET", "/", [("Host", "t.test")]).status == 200


def test_t13_a_tunnel_is_for_its_name_and_port_only(tunnel):
    cage, origin = tunnel(lambda conn: conn.read_to_end())
    for authority in ("w.test:2222", "t.test:2223", "other.test:2222"):
        wire, answer = cage.ask_connect(authority)
        if answer.status == 200:  # 2222 is listed: the refusal comes inside TLS, and other bytes end it
            wire.send(b"SSH-2.0-test\r\n").read_until_closed()
            cage.log.wait(decision="block", host=authority.split(":")[0])
        else:
            refused(answer, {"port.not_allowed", "host.not_allowed"})
            logged_block(cage, answer)
    assert not origin.conns


def test_plain_requests_do_not_go_through_a_tunnel_rule(tunnel):
    cage, origin = tunnel(None)
    answer = cage.fetch("GET", "http://t.test:2222/")
    refused(answer, "tunnel.only")
    logged_block(cage, answer)
    assert not origin.conns


def test_a_tunnel_that_leads_nowhere_is_a_502(start_cage):
    with RawOrigin() as gone:
        pin = gone.pin
    cage = start_cage(policy({"id": "ssh", "action": "tunnel", "hosts": ["t.test"], "ports": [2222]}, pins={"t.test": pin}))
    _, answer = cage.ask_connect(HOST)
    upstream_failed(answer, "upstream.unreachable")
    cage.log.wait(event="connect", decision="error", reason="upstream.unreachable", host="t.test")


def test_a_tunnel_to_a_private_address_is_refused(start_cage):
    rule = {"id": "ssh", "action": "tunnel", "hosts": ["127.0.0.1"], "ports": [2222]}
    cage = start_cage(policy(rule))
    _, answer = cage.ask_connect("127.0.0.1:2222")
    refused(answer, "address.private")
    logged_block(cage, answer)


def test_a_slow_reader_holds_the_sender_back(tunnel):
    """Nobody reads for a while: the proxy must not take in what it can't pass on."""
    def flood(conn):
        conn.sock.settimeout(2)
        sent = 0
        try:
            while sent < 64 << 20:
                sent += conn.sock.send(b"x" * 65536)
        except socket.timeout:
            pass
        conn.sent = sent

    cage, origin = tunnel(flood)
    wire, _ = cage.ask_connect(HOST)
    origin.wait(lambda o: o.conns and hasattr(o.conns[0], "sent"), 20)
    assert origin.conns[0].sent < 32 << 20
    try:
        wire.read_until_closed()
    except Truncated:
        pass

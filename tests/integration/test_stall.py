"""Who is waited for: times run for the side that owes something, and the other side can't gain time by talking. With the small
limits of limits/small_limits.h."""
import os
import socket
import threading

import pytest
from cagelib.checks import upstream_failed
from cagelib.proxy import policy, small_binary, wait_until
from cagelib.raw import RawOrigin

URL = "http://s.test/"
HOST = [("Host", "s.test")]


@pytest.fixture
def over():
    """Set at the end of the test: lets handlers go."""
    event = threading.Event()
    yield event
    event.set()


def start(start_cage, origin):
    return start_cage(policy({"id": "s", "hosts": ["s.test"], "ports": [80]}, pins={"s.test": origin.pin}), program=small_binary())


def send_some(wire, data):
    try:
        wire.send(data)
    except OSError:
        pass  # the proxy has answered meanwhile


def test_a_server_that_stops_reading_an_upload_is_the_one_that_is_late(start_cage, over):
    def handler(conn):
        conn.read_head()
        over.wait(30)

    with RawOrigin(handler) as origin:
        cage = start(start_cage, origin)
        wire = cage.connect()
        body = os.urandom(16 << 20)
        wire.send(b"PUT http://s.test/up HTTP/1.1\r\nHost: s.test\r\nContent-Length: %d\r\n\r\n" % len(body))
        sender = threading.Thread(target=send_some, args=(wire, body))
        sender.start()
        upstream_failed(wire.read_response(), "upstream.timeout", 504)
        wire.close()
        sender.join()
        line = cage.log.wait(event="request", path="/up")
        assert cage.log.wait(event="response", txn=line["txn"])["reason"] == "upstream.timeout"


def test_a_client_that_reads_nothing_gains_no_time_by_sending(start_cage, over):
    def handler(conn):
        conn.read_request()
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n" + bytes(16 << 20))
        over.wait(30)

    with RawOrigin(handler) as origin:
        cage = start(start_cage, origin)
        wire = cage.connect()
        wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wire.request("GET", URL + "down", HOST)
        line = cage.log.wait(event="request", path="/down")

        def result():
            send_some(wire, b"G")
            return cage.log.find(event="response", txn=line["txn"])

        assert wait_until(result, 10, "it is still there")[0]["reason"] == "client.timeout"

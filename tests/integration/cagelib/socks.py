"""The client's side of SOCKS5, byte for byte."""
import ipaddress
import struct

NO_METHOD = b"\x05\x01\x00"
OK, FAILED, NOT_ALLOWED, UNREACHABLE, BAD_COMMAND, BAD_ADDRESS = 0, 1, 2, 4, 7, 8


def request(host, port, command=1):
    """The bytes of a request; host: a name as text or bytes, or an ipaddress."""
    if isinstance(host, (ipaddress.IPv4Address, ipaddress.IPv6Address)):
        address = (b"\x01" if host.version == 4 else b"\x04") + host.packed
    else:
        name = host if isinstance(host, bytes) else host.encode("latin-1")
        address = b"\x03" + bytes([len(name)]) + name
    return b"\x05" + bytes([command]) + b"\x00" + address + struct.pack(">H", port)


def password(user, secret):
    """The bytes of RFC 1929."""
    user, secret = user.encode("latin-1"), secret.encode("latin-1")
    return b"\x01" + bytes([len(user)]) + user + bytes([len(secret)]) + secret


def read_reply(wire):
    """The code of the reply; its address is always 0.0.0.0:0."""
    reply = wire.read_exact(10)
    assert (reply[0], reply[2:]) == (5, b"\x00\x01" + bytes(6)), reply
    return reply[1]


def ask(cage, host, port):
    """Asks for a connection without saying who: the connection and the code of the reply."""
    wire = cage.connect_to(cage.socks_port)
    wire.send(NO_METHOD)
    assert wire.read_exact(2) == b"\x05\x00"
    return wire, read_reply(wire.send(request(host, port)))

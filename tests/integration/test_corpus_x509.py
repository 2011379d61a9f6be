"""The chains of x509-limbo: which servers we believe. At their fixed times through the code that verifies a server
(tests/unit/proxy/limbo.c), and those that hold now, served to the real proxy, which must come to the same verdict."""
import datetime
import ssl
import subprocess

import pytest
from cagelib.corpora import helper, load
from cagelib.proxy import policy
from cagelib.raw import RawOrigin

# We accept what x509-limbo rejects, since OpenSSL does, as in curl and git.
ACCEPTED = {
    "we look at no revocation lists: a server does not send them": [
        "crl::revoked-certificate-with-crl", "crl::crlnumber-missing", "crl::crlnumber-critical", "crl::issuer-missing-crlsign"],
    "we set no depth of chains beyond OpenSSL's 100": [
        "pathlen::max-chain-depth-0-exhausted", "pathlen::max-chain-depth-1-exhausted"],
    "X509_V_FLAG_X509_STRICT would reject it, and with it the CAs that people make with a few openssl commands": [
        "rfc5280::aki::leaf-missing-aki", "rfc5280::aki::intermediate-missing-aki", "rfc5280::ski::root-missing-ski",
        "rfc5280::ski::intermediate-missing-ski", "rfc5280::san::noncritical-with-empty-subject",
        "rfc5280::root-missing-basic-constraints", "rfc5280::root-non-critical-basic-constraints",
        "rfc5280::leaf-ku-keycertsign"],
    "a CA's slip in form that leaves the names and the signatures as they are": [
        "rfc5280::nc::permitted-dns-match-noncritical", "rfc5280::nc::invalid-dnsname-leading-period",
        "rfc5280::nc::not-allowed-in-ee-noncritical", "rfc5280::nc::not-allowed-in-ee-critical",
        "rfc5280::nc::nc-permits-invalid-dns-san", "rfc5280::pc::ica-noncritical-pc", "rfc5280::san::underscore-dns",
        "rfc5280::serial::too-long", "rfc5280::serial::zero", "webpki::aki::root-with-aki-missing-keyidentifier",
        "webpki::eku::ee-anyeku", "webpki::eku::ee-critical-eku", "webpki::eku::ee-without-eku", "webpki::eku::root-has-eku",
        "webpki::nc::intermediate-permitted-excluded-subtrees-both-null",
        "webpki::nc::intermediate-permitted-excluded-subtrees-both-empty-sequences",
        "webpki::san::san-critical-with-nonempty-subject", "webpki::malformed-aia"],
    "a common name that disagrees with the SAN: we never read the common name": [
        "webpki::cn::ipv4-hex-mismatch", "webpki::cn::ipv4-leading-zeros-mismatch", "webpki::cn::ipv6-uppercase-mismatch",
        "webpki::cn::ipv6-uncompressed-mismatch", "webpki::cn::ipv6-non-rfc5952-mismatch", "webpki::cn::punycode-not-in-san",
        "webpki::cn::utf8-vs-punycode-mismatch", "webpki::cn::not-in-san", "webpki::cn::case-mismatch"],
    "we have no list of public suffixes": [
        "webpki::san::public-suffix-multi-label-wildcard-san", "webpki::san::public-suffix-private-namespace-wildcard-san"],
    "a kind or length of key that the web's CAs may not use, though it is strong enough": [
        "webpki::forbidden-dsa-root", "webpki::forbidden-dsa-leaf", "webpki::forbidden-rsa-not-divisible-by-8-in-root",
        "webpki::forbidden-rsa-key-not-divisible-by-8-in-leaf"],
}
# We reject what x509-limbo accepts: always the safe side.
REJECTED = {
    "OpenSSL builds one path and does not go back to try another": [
        "cve::cve-2024-0567", "rfc5280::nc::nc-forbids-alternate-chain-ica", "rfc5280::nc::nc-forbids-same-chain-ica"],
    "a CA's certificate is no server's": ["pathlen::validation-ignores-pathlen-in-leaf", "rfc5280::ca-as-leaf"],
    "the last second is not part of the time": ["rfc5280::validity::notafter-exact", "rfc5280::validity::notafter-fractional"],
    "only a root ends a chain": ["rfc5280::root-and-intermediate-swapped"],
}
# Believed at unit level, but TLS has no use for the key.
NOT_SERVED = {"webpki::forbidden-dsa-leaf": "no cipher of ours signs with DSA"}


def listed(table):
    return {name for names in table.values() for name in names}


def host_of(case):
    """The expected name as a URL has it."""
    value = case["expected_peer_name"]["value"]
    return "[%s]" % value if ":" in value else value


def record(case):
    """The input of the helper."""
    time = case["validation_time"]
    seconds = int(datetime.datetime.fromisoformat(time).timestamp()) if time else 0
    trust = "".join(case["trusted_certs"]).encode()
    chain = "".join([case["peer_certificate"], *case["untrusted_intermediates"]]).encode()
    return b"%s %d %d %d\n%s%s" % (host_of(case).encode(), seconds, len(trust), len(chain), trust, chain)


@pytest.fixture(scope="module")
def cases():
    return load("x509_limbo")


@pytest.fixture(scope="module")
def verdicts(cases):
    """id -> "accept" or "reject WHY", at the time of each case."""
    done = subprocess.run([helper("limbo")], input=b"".join(map(record, cases)), capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    lines = done.stdout.decode().splitlines()
    assert len(lines) == len(cases)
    return {case["id"]: line for case, line in zip(cases, lines)}


def test_verdicts(cases, verdicts):
    accepted = {c["id"] for c in cases if verdicts[c["id"]] == "accept"}
    good = {c["id"] for c in cases if c["expected_result"] == "SUCCESS"}
    assert {x: verdicts[x] for x in (accepted - good) ^ listed(ACCEPTED)} == {}, "wrongly accepted, or listed in vain"
    assert {x: verdicts[x] for x in (good - accepted) ^ listed(REJECTED)} == {}, "wrongly rejected, or listed in vain"


def servable(case):
    """A server context with that chain, or None where there is none to have."""
    if not case["peer_certificate_key"] or case["validation_time"]:
        return None
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.set_ciphers("DEFAULT:@SECLEVEL=0")
    return tls


def load_chain(tls, case, directory):
    chain, key = directory / "chain.pem", directory / "key.pem"
    chain.write_text("".join([case["peer_certificate"], *case["untrusted_intermediates"]]))
    key.write_text(case["peer_certificate_key"])
    try:
        tls.load_cert_chain(chain, key)
    except ssl.SSLError:
        return False  # our own OpenSSL does not serve it
    return True


def rules_for(case, origin, directory):
    roots = directory / ("roots-%d.pem" % len(list(directory.iterdir())))
    roots.write_text("".join(case["trusted_certs"]))
    host = case["expected_peer_name"]["value"]
    rule = {"id": "limbo", "hosts": [host], "addresses": ["127.0.0.0/8"]}
    return policy(rule, pins={host: origin.pin}, trust=[roots])


def ask(cage, case):
    wire, answer = cage.ask_connect(host_of(case) + ":443")
    assert answer.status == 200, (case["id"], answer)
    cage.start_tls(wire, case["expected_peer_name"]["value"])
    return wire.exchange("GET", "/", [("Host", host_of(case))])


def test_served(start_cage, cases, verdicts, tmp_path):
    wrong, served = [], 0
    files = tmp_path / "served"
    files.mkdir()
    with RawOrigin(tls=ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)) as origin:
        cage = start_cage(policy({"id": "none", "hosts": ["none.test"]}))
        for case in cases:
            tls = servable(case)
            if not tls or not load_chain(tls, case, files):
                continue
            origin.tls = tls
            cage.reload(rules_for(case, origin, files))
            answer = ask(cage, case)
            cage.hang_up()
            served += 1
            wanted = (200, "") if verdicts[case["id"]] == "accept" and case["id"] not in NOT_SERVED else (502, "upstream.unverified")
            got = (answer.status, "" if answer.status == 200 else answer.json()["reason"])
            if got != wanted:
                wrong.append((case["id"], verdicts[case["id"]], got))
    assert not wrong, wrong
    assert served > 120

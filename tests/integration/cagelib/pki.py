"""Certificates for tests, made with the openssl command. A Pki is one CA and what it signed, in one directory."""
import os
import subprocess

CONFIG = "[req]\ndistinguished_name=dn\nprompt=no\n[dn]\n"
P256 = ("ec", "-pkeyopt", "ec_paramgen_curve:P-256")


def openssl(*args):
    done = subprocess.run(["openssl", *args], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise RuntimeError("openssl %s: %s" % (args[0], done.stderr))
    return done.stdout


class Leaf:
    """A certificate with its key: paths of the two PEM files."""

    def __init__(self, cert, key):
        self.cert, self.key = cert, key


class Pki:
    def __init__(self, directory, name="cage test CA"):
        self.dir = str(directory)
        os.makedirs(self.dir, exist_ok=True)
        self.config = self._write("openssl.cnf", CONFIG)
        self.ca = self._self_signed("ca", ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign"], name)
        self.ca_pem = self.ca.cert
        self._count = 0

    def _write(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path, "w", encoding="ascii") as f:
            f.write(text)
        return path

    def _self_signed(self, name, extensions, common_name):
        leaf = Leaf(os.path.join(self.dir, name + ".pem"), os.path.join(self.dir, name + ".key"))
        added = [a for e in extensions + ["subjectKeyIdentifier=hash"] for a in ("-addext", e)]
        openssl("req", "-x509", "-config", self.config, "-newkey", *P256, "-nodes", "-keyout", leaf.key, "-out", leaf.cert,
                "-subj", "/CN=" + common_name, "-days", "30", *added)
        return leaf

    def self_signed(self, *names):
        """Signed by its own key and by nobody else."""
        self._count += 1
        return self._self_signed("self%d" % self._count, ["basicConstraints=critical,CA:FALSE", san(names)], "self-signed")

    def leaf(self, *names, days=30, common_name="", is_ca=False, key=P256):
        """A server certificate for those names (addresses are recognised). Without names it has a common name only."""
        self._count += 1
        base = os.path.join(self.dir, "leaf%d" % self._count)
        leaf = Leaf(base + ".pem", base + ".key")
        extensions = ["basicConstraints=critical,CA:%s" % ("TRUE" if is_ca else "FALSE"), "extendedKeyUsage=serverAuth"]
        extensions += ["keyUsage=critical,digitalSignature" + (",keyCertSign" if is_ca else "")]
        extensions += [san(names)] if names else []
        subject = "/CN=" + common_name if common_name else "/O=cage tests"
        openssl("req", "-new", "-config", self.config, "-newkey", *key, "-nodes", "-keyout", leaf.key, "-out", base + ".csr",
                "-subj", subject)
        openssl("x509", "-req", "-in", base + ".csr", "-CA", self.ca.cert, "-CAkey", self.ca.key, "-CAcreateserial",
                "-days", str(days), "-extfile", self._write("leaf%d.ext" % self._count, "\n".join(extensions) + "\n"),
                "-out", leaf.cert)
        return leaf


def san(names):
    kinds = ["IP" if n.replace(".", "").isdigit() or ":" in n else "DNS" for n in names]
    return "subjectAltName=" + ",".join("%s:%s" % pair for pair in zip(kinds, names))

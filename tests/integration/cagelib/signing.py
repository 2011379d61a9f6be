"""Keys and signatures of images, made with openssl as docs/admission.md has it."""
import base64
import json
import subprocess

SECONDS = 60


def openssl(*words, data=None):
    return subprocess.run(["openssl", *words], input=data, capture_output=True, check=True, timeout=SECONDS).stdout


def make_key(directory, name, curve="prime256v1"):
    """The paths of a private and a public key."""
    private, public = str(directory / (name + ".key")), str(directory / (name + ".pub"))
    if curve == "rsa":
        openssl("genrsa", "-out", private, "2048")
        openssl("rsa", "-in", private, "-pubout", "-out", public)
    else:
        openssl("ecparam", "-name", curve, "-genkey", "-noout", "-out", private)
        openssl("ec", "-in", private, "-pubout", "-out", public)
    return private, public


def payload(name, digest, **more):
    return json.dumps({"critical": {"identity": {"docker-reference": name}, "image": {"docker-manifest-digest": "sha256:" + digest},
                                    "type": "cosign container image signature"}, "optional": None, **more}).encode()


def sign(private, data):
    return base64.b64encode(openssl("dgst", "-sha256", "-sign", private, data=data))

#!/usr/bin/python3
"""An inspector of your own, for `inspectors.external` of a cage policy. Standard library only.

cage writes one JSON object per line to stdin and waits for one line on stdout for each "head", "body" and "end".
Nothing of a request leaves before all that was shown of it is answered. See docs/inspectors.md."""
import base64
import json
import sys

FORBIDDEN = b"project-heron"  # must not leave in any body
kept = {}                     # id -> the last bytes of its body: a word may be cut between two pieces


def on_head(head):
    """The request line and all fields that will be sent; names are spelled as the client did."""
    fields = {name.lower(): value for name, value in head["headers"]}
    if head["path"].startswith("/internal/"):
        return {"verdict": "block", "note": "internal path on " + head["host"]}
    changes = {"set": {"x-inspected-by": "example"}}
    if "x-debug" in fields:
        changes["remove"] = ["x-debug"]
    if head["method"] == "GET":
        return {"verdict": "done", **changes}  # the rest does not matter
    return {"verdict": "pass", **changes}


def on_body(body):
    """A piece of the body, with gzip and the like undone."""
    text = kept.get(body["id"], b"") + base64.b64decode(body["data"])
    kept[body["id"]] = text[-len(FORBIDDEN):]
    return {"verdict": "block" if FORBIDDEN in text else "flag" if b"TODO" in text else "pass"}


def on_end(end):
    kept.pop(end["id"], None)
    return {"verdict": "pass"}


def on_cancel(cancel):
    """The request ended early. No answer."""
    kept.pop(cancel["id"], None)


for line in sys.stdin:
    message = json.loads(line)
    answer = {"head": on_head, "body": on_body, "end": on_end, "cancel": on_cancel}[message["type"]](message)
    if answer:
        if answer["verdict"] in ("block", "done"):
            kept.pop(message["id"], None)  # nothing more will come
        print(json.dumps({"id": message["id"], **answer}), flush=True)

"""Workflows of cage serve, for tests."""
import time

WORKFLOWS = "/api/v1/workflows"
OVER = ("succeeded", "failed", "cancelled")


def step(ident, script, needs=(), artifacts=(), inputs=(), **sandbox):
    """One that runs a shell script. artifacts: paths, or (path, max_bytes); inputs: (step, path) or (step, path, to)."""
    out = {"id": ident, "sandbox": {"command": ["sh", "-c", script], **sandbox}}
    if needs:
        out["needs"] = list(needs)
    if artifacts:
        out["artifacts"] = [{"path": a} if isinstance(a, str) else {"path": a[0], "max_bytes": a[1]} for a in artifacts]
    if inputs:
        out["inputs"] = [dict(zip(("step", "path", "to"), i)) for i in inputs]
    return out


def begin(service, *steps, **more):
    answer = service.post(WORKFLOWS, {"steps": list(steps), **more})
    assert answer.status == 201, answer
    return answer.json["id"]


def show(service, ident):
    answer = service.get("%s/%s" % (WORKFLOWS, ident))
    assert answer.status == 200, answer
    return answer.json


def wait(service, ident, is_so=lambda w: w["state"] in OVER, seconds=90):
    """The workflow, once it is so; by default at its end."""
    end = time.monotonic() + seconds
    while True:
        workflow = show(service, ident)
        if is_so(workflow):
            return workflow
        assert workflow["state"] not in OVER and time.monotonic() < end, (workflow, service.err.text())
        time.sleep(0.02)


def run(service, *steps, **more):
    return wait(service, begin(service, *steps, **more))


def states(workflow):
    return {s["id"]: s["state"] for s in workflow["steps"]}


def of(workflow, ident):
    return next(s for s in workflow["steps"] if s["id"] == ident)


def artifact(service, ident, name, path):
    return service.get("%s/%s/artifacts/%s/%s" % (WORKFLOWS, ident, name, path))


def sandboxes(service, ident):
    return service.get("/api/v1/sandboxes?limit=1000&label=workflow=" + ident).json["items"]

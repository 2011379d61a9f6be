"""Which images there are, and what each is made of. Names are those of the folders."""
import os

IMAGES = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
ROOT = os.path.dirname(IMAGES)
NPM_AGENTS = ("claude-code", "codex", "gemini-cli", "qwen-code", "opencode")

# name: the build arguments that name another image, which is built before.
NEEDS = {
    "programs": {"BASE": "base"},
    "proxy": {"BASE": "base", "PROGRAMS": "programs"},
    "dns": {"BASE": "base", "PROGRAMS": "programs"},
    "gate": {"BASE": "base", "PROGRAMS": "programs"},
    "ship": {"BASE": "base", "PROGRAMS": "programs"},
    "npm": {"BASE": "base"},
    "agent-base": {"BASE": "base", "NPM": "npm"},
    **{name: {"AGENT_BASE": "agent-base", "NPM": "npm"} for name in NPM_AGENTS},
    "aider": {"AGENT_BASE": "agent-base"},
}
HELPERS = ("programs", "npm")  # never published: stages that several images share
PUBLISHED = tuple(name for name in NEEDS if name not in HELPERS)


def containerfile(name):
    return os.path.join(IMAGES, name, "Containerfile")


def lacks(name):
    """Why an image can't be built from this tree, or None."""
    lock = os.path.join(IMAGES, "aider", "requirements.txt")
    if name == "aider" and not os.path.exists(lock):
        return ("aider has no list of hashes yet; where a Python package index can be reached, make it: "
                "pip-compile --generate-hashes -o images/aider/requirements.txt images/aider/requirements.in")
    return None


def order(names):
    """Those images with all that they need, each after what it needs."""
    out = []

    def add(name):
        for need in NEEDS[name].values():
            if need != "base":
                add(need)
        if name not in out:
            out.append(name)

    for name in names:
        add(name)
    return out


def pinned_base():
    """The base of the registry, as the Containerfiles name it."""
    with open(containerfile("programs")) as f:
        line = next(line for line in f if line.startswith("ARG BASE="))
    return line.split("=", 1)[1].strip()

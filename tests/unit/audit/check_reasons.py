"""The closed list of reason codes is kept in three places: core/base/reason.h, docs/log.schema.json and the table of
docs/log.md. This check fails when they differ. Run with the root of the source tree as argument."""
import json
import pathlib
import re
import sys


def in_header(root):
    text = (root / "core/base/reason.h").read_text()
    return [code for code in re.findall(r'X\([A-Z_]+,\s*"([^"]*)"\)', text) if code]


def in_schema(root):
    return json.loads((root / "docs/log.schema.json").read_text())["$defs"]["reason"]["enum"]


def in_docs(root):
    text = (root / "docs/log.md").read_text()
    section = re.search(r"^## Reasons$(.*?)^## ", text, re.M | re.S).group(1)
    return re.findall(r"^\| `([^`]+)` \| \S.*\| \S.*\|$", section, re.M)


def main():
    root = pathlib.Path(sys.argv[1])
    header = in_header(root)
    bad = 0
    if len(header) < 10 or len(set(header)) != len(header):
        print("core/base/reason.h: the list can't be read, or has a code twice")
        bad = 1
    for name, codes in (("docs/log.schema.json", in_schema(root)), ("docs/log.md", in_docs(root))):
        for code in sorted(set(header) - set(codes)):
            print(f"{name}: {code} is missing")
        for code in sorted(set(codes) - set(header)):
            print(f"{name}: {code} is not in core/base/reason.h")
        if len(set(codes)) != len(codes):
            print(f"{name}: a code is there twice")
        bad |= sorted(codes) != sorted(header)
    return bad


if __name__ == "__main__":
    sys.exit(main())

"""docs/quality.md, whose tables stand between marks."""
import os

DOCUMENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "quality.md")


def write_document(marks, text):
    """Puts text between the two marks, in place of what stands there."""
    with open(DOCUMENT, encoding="utf-8") as file:
        old = file.read()
    before, rest = old.split(marks[0], 1)
    with open(DOCUMENT, "w", encoding="utf-8") as file:
        file.write(before + marks[0] + "\n" + text + "\n" + marks[1] + rest.split(marks[1], 1)[1])

"""What people read: progress on stderr, and one kind of error that says what to do."""
import sys


class Failed(Exception):
    """The build can't go on. status: 1, or 2 where the machine or the command line lacks something."""

    def __init__(self, text, status=1):
        super().__init__(text)
        self.status = status


def say(text):
    print("images: " + text, file=sys.stderr, flush=True)


def size(count):
    """1234567 -> "1.2 MB"."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return "%.*f %s" % (unit != "B", count, unit)
        count /= 1000
    return "%.2f GB" % count

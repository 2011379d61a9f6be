"""Licences as SPDX names them, where that is plain; where it is not, nothing is claimed."""
import re

DEBIAN = {
    "expat": "MIT", "mit": "MIT", "apache-2.0": "Apache-2.0", "apache-2": "Apache-2.0", "bsd-2-clause": "BSD-2-Clause", "bsd-3-clause": "BSD-3-Clause",
    "isc": "ISC", "zlib": "Zlib", "curl": "curl", "public-domain": None, "mpl-2.0": "MPL-2.0", "cc0-1.0": "CC0-1.0", "cc0": "CC0-1.0",
    "gpl-2": "GPL-2.0-only", "gpl-2+": "GPL-2.0-or-later", "gpl-3": "GPL-3.0-only", "gpl-3+": "GPL-3.0-or-later",
    "lgpl-2+": "LGPL-2.0-or-later", "lgpl-2.1": "LGPL-2.1-only", "lgpl-2.1+": "LGPL-2.1-or-later", "lgpl-3": "LGPL-3.0-only", "lgpl-3+": "LGPL-3.0-or-later",
    "artistic": "Artistic-1.0-Perl", "0bsd": "0BSD", "bsl-1.0": "BSL-1.0",
}
EXPRESSION = re.compile(r"[A-Za-z0-9.+-]+( (AND|OR|WITH) [A-Za-z0-9.+-]+)*")
KNOWN = {name for name in DEBIAN.values() if name} | {"BlueOak-1.0.0", "Python-2.0", "Unlicense", "PSF-2.0", "CC-BY-4.0", "CC-BY-3.0", "WTFPL"}


def of_debian(notice):
    """Of a copyright file in Debian's machine-readable form, if each licence in it has one plain name."""
    text = (notice or b"").decode("utf-8", "replace")
    if "copyright-format/1.0" not in text.split("\n\n")[0]:
        return None
    names = {name.strip().lower() for name in re.findall(r"^License:[ \t]*(\S.*)$", text, re.M)}
    found = {DEBIAN.get(name) for name in names}
    if not found or None in found:
        return None
    return " AND ".join(sorted(found))


def spdx(text):
    """An expression whose names are all known ones."""
    if not isinstance(text, str) or not EXPRESSION.fullmatch(text):
        return None
    words = [word for word in text.split() if word not in ("AND", "OR", "WITH")]
    return text if all(word in KNOWN for word in words) else None

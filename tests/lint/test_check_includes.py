"""The include check finds what it is there for, and lets the rest be."""
import check_includes
import pytest

OPENING = "/* what it is */\n"


@pytest.mark.parametrize("path, line, offends", [
    ("core/base/a.h", '#include "core/base/slice.h"', False),
    ("core/base/a.h", '#include "core/http/url.h"', True),
    ("core/policy/a.c", '#include "core/http/url.h"', False),
    ("core/http/a.c", '#include "core/policy/policy.h"', True),
    ("core/net/a.c", "#include <event2/event.h>", False),
    ("core/http/a.c", "#include <event2/event.h>", True),
    ("core/policy/a.c", "#include <openssl/evp.h>", False),
    ("core/policy/a.c", "# include <openssl/ssl.h>", True),
    ("inspectors/a.c", '#include "core/net/stream.h"', True),
    ("inspectors/a.c", '#include "core/http/message.h"', False),
    ("proxy/a.c", '#include "inspectors/chain.h"', False),
    ("core/audit/a.c", '#include "proxy/worker.h"', True),
    ("core/audit/a.c", '#include "../net/stream.h"', True),
    ("proxy/a.c", "char *s = \"\u00e9\";", True),
])
def test_one_line(tmp_path, capsys, path, line, offends):
    source = tmp_path / path
    source.parent.mkdir(parents=True)
    source.write_text(OPENING + line + "\n", encoding="utf-8")
    assert check_includes.main(str(tmp_path)) == (1 if offends else 0)
    assert capsys.readouterr().out.startswith(path + ":2: ") == offends


def test_a_source_must_open_with_a_comment(tmp_path, capsys):
    (tmp_path / "proxy").mkdir()
    (tmp_path / "proxy" / "a.c").write_text("int a;\n")
    assert check_includes.main(str(tmp_path)) == 1
    assert capsys.readouterr().out == "proxy/a.c:1: does not open with a comment\n"

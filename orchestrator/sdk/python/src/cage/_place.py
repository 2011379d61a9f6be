"""Where the service is, found as the cage command finds it, and the token, which no repr and no message shows."""
from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass, field
from typing import Dict, Mapping, Optional, Union

MAX_TOKEN = 512
_URL = re.compile(r"http://(localhost|[0-9.]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})/?")
_TOKEN = re.compile(r"[!-~]{1,%d}" % MAX_TOKEN)


@dataclass(frozen=True)
class Place:
    """A unix socket (path), or an address and port with a token."""

    name: str
    path: str = ""
    address: str = ""
    port: int = 0
    host: str = "localhost"
    token: str = field(default="", repr=False)

    def headers(self) -> Dict[str, str]:
        """What each request there has to say."""
        fields = {"Host": self.host}
        if self.token:
            fields["Authorization"] = "Bearer " + self.token
        return fields


def _state_dir(env: Mapping[str, str]) -> str:
    if env.get("CAGE_STATE"):
        return env["CAGE_STATE"]
    if os.geteuid() == 0:
        return "/var/lib/cage/serve"
    if env.get("XDG_STATE_HOME", "").startswith("/"):
        return env["XDG_STATE_HOME"] + "/cage/serve"
    if env.get("HOME", "").startswith("/"):
        return env["HOME"] + "/.local/state/cage/serve"
    raise ValueError("where is the service? Neither socket nor CAGE_SOCKET is given, and there is no HOME")


def _token(given: Optional[str], file: Union[str, "os.PathLike[str]", None], env: Mapping[str, str]) -> str:
    token, source = (given, "token") if given is not None else (env.get("CAGE_TOKEN"), "CAGE_TOKEN")
    if file is not None:
        with open(file, encoding="ascii", errors="replace") as f:
            token, source = f.read(MAX_TOKEN + 3).rstrip("\r\n"), "token_file"
    if token is None:
        raise ValueError("over TCP a token is needed: token, token_file or CAGE_TOKEN (cage serve --new-token makes one)")
    if not _TOKEN.fullmatch(token):
        raise ValueError("%s: that is no token" % source)
    return token


def _of_url(url: str, token: str) -> Place:
    found = _URL.fullmatch(url)
    try:
        port = int(found.group(2)) if found else 0
        address = "127.0.0.1" if found and found.group(1) == "localhost" else str(ipaddress.ip_address(found.group(1).strip("[]") if found else ""))
    except ValueError:
        port = 0
    if not 0 < port < 65536:
        # not repeated in the message: somebody may have put a password into it
        raise ValueError("url: expected http://ADDRESS:PORT, such as http://127.0.0.1:8090")
    return Place(name=url, address=address, port=port, host=url[len("http://"):].rstrip("/"), token=token)


def find_place(socket: Union[str, "os.PathLike[str]", None], url: Optional[str], token: Optional[str],
               token_file: Union[str, "os.PathLike[str]", None], env: Mapping[str, str]) -> Place:
    """The place that is meant by what was given, else by the variables of the environment."""
    if url is not None:
        if socket is not None:
            raise ValueError("url and socket: only one of them can be meant")
        if token is not None and token_file is not None:
            raise ValueError("token and token_file: only one of them can be meant")
        return _of_url(url, _token(token, token_file, env))
    if token is not None or token_file is not None:
        raise ValueError("a token needs url; a unix socket takes none")
    path = os.fspath(socket) if socket is not None else env.get("CAGE_SOCKET") or _state_dir(env) + "/socket"
    return Place(name=path, path=path)

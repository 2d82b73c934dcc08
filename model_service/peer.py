"""Who is at the other end of a Unix socket: anybody may connect to an abstract name, or take it first (unix(7), SO_PEERCRED)."""

from __future__ import annotations

import os
import socket
import struct

_CREDENTIALS = struct.Struct("3i")


def is_same_user(connection: socket.socket, user: int | None = None) -> bool:
    """Whether the other end is a process of this user, who could also attach a debugger; or of the `user` of that number."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(credentials)[1]) == (os.getuid() if user is None else user)

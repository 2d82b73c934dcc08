"""Who reaches a Ray of our own: processes of this machine that know its token (Ray 2.60).

Whoever can talk to Ray's processes has them run what he likes. So they take no call without the token, and listen on the loopback address
alone: Ray takes even a wish for "127.0.0.1" for one to be found by the network, unless it is told that there are no clusters here.
"""

from __future__ import annotations

import secrets
import shlex
from pathlib import Path

from ray._private import ray_constants
from ray._raylet import AuthenticationTokenLoader, Config  # type: ignore[attr-defined]  # compiled, and not declared

ADDRESS, MODE, TOKEN, TOKEN_PATH = "RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
CLUSTERS = ray_constants.ENABLE_RAY_CLUSTERS_ENV_VAR
"""Named after the systems where there are none by default; "0" means the same on all."""


class RayAccess:
    """The token of one run, and what others need to join it, in files that only this user can read. `folder` is private too."""

    def __init__(self, folder: Path) -> None:
        self.token_file = folder / "ray-token"
        self.shell_file = folder / "ray.env"
        """For a shell (`. FILE`): the jobs and the commands of Ray that it starts find this Ray, and may use it."""

    def make(self) -> dict[str, str]:
        """Of a new token, the environment of all of Ray's processes. It names the file; the token is in no environment or command line."""
        _write(self.token_file, secrets.token_hex(32))
        # An empty token in the environment counts as none, and one of another Ray would be taken before the file's.
        return {MODE: "token", TOKEN: "", TOKEN_PATH: str(self.token_file), CLUSTERS: "0"}

    def apply(self) -> None:
        """Have this process go by that environment, whatever Ray has read of it before."""
        ray_constants.ENABLE_RAY_CLUSTER = False
        Config.initialize("")
        AuthenticationTokenLoader.instance().reset_cache()

    def publish(self, address: str) -> None:
        """Write `shell_file`; `address` is where the Ray that has started is found."""
        joined = {ADDRESS: address, MODE: "token", TOKEN: "", TOKEN_PATH: str(self.token_file), CLUSTERS: "0"}
        _write(self.shell_file, "".join(f"export {name}={shlex.quote(value)}\n" for name, value in joined.items()))


def _write(file: Path, text: str) -> None:
    file.touch(mode=0o600)
    file.write_text(text, encoding="utf-8")

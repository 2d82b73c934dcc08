"""The files of the page, which Vite builds of `web/`, and the headers with which a browser gets them.

The page uses the service as any client does, by the endpoints of its API. Whatever users and models write is set as text, and the
Content-Security-Policy allows no script, style or connection but the service's own.
"""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

BUILT = Path(__file__).parent / "built"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",  # asked for again each time, by its ETag: names have no version
    "vary": "accept-encoding",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file; `packed` is its content by gzip."""

    content: bytes
    packed: bytes
    media_type: str
    etag: str

    @classmethod
    def read(cls, path: Path) -> PageFile:
        content = path.read_bytes()
        etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        return cls(content, gzip.compress(content, mtime=0), mimetypes.types_map[path.suffix], etag)

    async def answer(self, request: Request) -> Response:
        headers = {**HEADERS, "etag": self.etag}
        if request.headers.get("if-none-match") == self.etag:
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(self.packed, headers={**headers, "content-encoding": "gzip"}, media_type=self.media_type)
        return Response(self.content, headers=headers, media_type=self.media_type)


def page_routes(folder: Path = BUILT) -> list[Route]:
    """One for each file, `index.html` at `/`."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [Route(_url(path.relative_to(folder)), PageFile.read(path).answer) for path in paths]


def _url(path: Path) -> str:
    return "/" if path.name == "index.html" else f"/{path.as_posix()}"

"""Serves the playground: static files that Vite builds from `playground/` at the root of the repository.

In the browser it calls the API as any other client. The Content-Security-Policy allows scripts, styles and connections of the service's own
origin only.
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
    "cache-control": "no-cache",  # revalidated by its ETag each time: file names have no version
    "vary": "accept-encoding",
}


@dataclass(frozen=True, slots=True)
class StaticFile:
    """`compressed` is the content by gzip."""

    content: bytes
    compressed: bytes
    media_type: str
    etag: str

    @classmethod
    def read(cls, path: Path) -> StaticFile:
        content = path.read_bytes()
        etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        return cls(content, gzip.compress(content, mtime=0), mimetypes.types_map[path.suffix], etag)

    async def answer(self, request: Request) -> Response:
        headers = {**HEADERS, "etag": self.etag}
        if request.headers.get("if-none-match") == self.etag:
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(self.compressed, headers={**headers, "content-encoding": "gzip"}, media_type=self.media_type)
        return Response(self.content, headers=headers, media_type=self.media_type)


def playground_routes(folder: Path = BUILT) -> list[Route]:
    """One route for each file, `index.html` at `/`."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [Route(_url(path.relative_to(folder)), StaticFile.read(path).answer) for path in paths]


def _url(path: Path) -> str:
    return "/" if path.name == "index.html" else f"/{path.as_posix()}"

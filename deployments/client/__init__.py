"""For users: a typed client, over HTTP or by Ray handle. It imports nothing of the server but its errors and the answers' way."""

from deployments.client.asynchronous import AsyncStructuredClient
from deployments.client.client import Generation, StructuredClient

__all__ = ["AsyncStructuredClient", "Generation", "StructuredClient"]

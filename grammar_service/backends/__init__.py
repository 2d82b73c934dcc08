"""The libraries behind one protocol, and which of them serves a spec."""

from grammar_service.backends.protocol import Backend, CompiledGrammar, CompiledPayload, Fault, Matcher
from grammar_service.backends.selection import (
    backend_named,
    faults_as_written,
    faults_in_the_way,
    loading_backends,
    select_backend,
    select_stopgap,
)

__all__ = [
    "Backend",
    "CompiledGrammar",
    "CompiledPayload",
    "Fault",
    "Matcher",
    "backend_named",
    "faults_as_written",
    "faults_in_the_way",
    "loading_backends",
    "select_backend",
    "select_stopgap",
]

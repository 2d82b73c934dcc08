from grammar_service.backends.protocol import Backend, CompiledGrammar, Fault, Matcher
from grammar_service.backends.selection import backend_named, select_backend

__all__ = ["Backend", "CompiledGrammar", "Fault", "Matcher", "backend_named", "select_backend"]

"""Grammars that have names: what is kept of them, and where."""

from grammar_service.registry.entry import MAX_ID_LENGTH, GrammarEntry, ResolvedAs, is_valid_id
from grammar_service.registry.names import GrammarNames
from grammar_service.registry.room import Room, Stored
from grammar_service.registry.store import RegistryStore

__all__ = ["MAX_ID_LENGTH", "GrammarEntry", "GrammarNames", "RegistryStore", "ResolvedAs", "Room", "Stored", "is_valid_id"]

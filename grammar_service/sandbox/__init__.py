"""Compilers in children that can be killed, and whose turn it is."""

from grammar_service.sandbox.sandbox import QUICK, Sandbox, SandboxSettings

__all__ = ["QUICK", "Sandbox", "SandboxSettings"]

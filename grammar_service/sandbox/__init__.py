from grammar_service.sandbox.sandbox import Sandbox, SandboxSettings

__all__ = ["Sandbox", "SandboxSettings"]

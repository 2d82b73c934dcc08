from grammar_service.sandbox.sandbox import QUICK, Sandbox, SandboxSettings

__all__ = ["QUICK", "Sandbox", "SandboxSettings"]

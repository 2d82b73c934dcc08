"""The whole service on this machine: checked, started, shown, watched, and ended without a trace."""

"""The command line. Each command imports what it needs when it runs: `--help` must not wait for Ray or vLLM."""

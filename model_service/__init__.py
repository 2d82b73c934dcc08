"""One model replica: a vLLM engine, and grammars as artifacts, matchers and masks; knows no HTTP and no settings file."""

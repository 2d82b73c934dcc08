"""The playground: a web page at `/` for trying constraints."""

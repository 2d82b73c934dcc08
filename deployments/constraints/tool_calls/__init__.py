"""Tools of a request as grammars: how models write calls, and where a fault in a call is in the request."""

"""Whole answers under canonical grammars, drawn as an engine draws them: whether they get stuck, and what their masks are."""

"""Small automata over tokens, drawn: as Graphviz reads them, and as a picture."""

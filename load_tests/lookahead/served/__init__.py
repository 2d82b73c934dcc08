"""The experiment on engines: what a model replica says and takes, with many answers at once or one after the other."""

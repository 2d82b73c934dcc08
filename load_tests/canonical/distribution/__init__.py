"""How far masks take the distribution of answers from the model's own one."""

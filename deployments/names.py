"""What the application and its deployments are called in Ray Serve."""

APPLICATION = "maskcast"
INGRESS = "Ingress"
MODEL = "ModelReplica"
COMPILER = "GrammarCompiler"
REWARD = "Reward-"
"""And the name that settings give it."""

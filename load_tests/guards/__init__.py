"""What guards cost and promise: a step's time, and texts of random schemas that end without a name twice."""

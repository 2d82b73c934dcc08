"""What Ray Serve places on the cluster: compile replicas, model replicas, mask broadcasters, and what they are built from."""

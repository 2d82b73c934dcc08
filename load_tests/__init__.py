"""What a user would notice, measured: a folder a result, each a command. Not installed with the service."""

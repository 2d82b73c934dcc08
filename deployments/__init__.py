"""What a user starts and talks to: the settings, the Ray Serve application, the HTTP API, the command line, the client."""

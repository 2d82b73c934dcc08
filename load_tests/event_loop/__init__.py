"""How long one request's bytes keep an ingress's event loop."""

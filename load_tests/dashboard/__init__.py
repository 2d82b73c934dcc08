"""The dashboard's panels, drawn from a run of the service that Prometheus has scraped."""

"""What the integrations of httpx and httpx2 share; neither is imported here."""

"""Integrations: one module a library, which it imports when it is used and not before."""

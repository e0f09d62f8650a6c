"""Inputs as people bring them: small files of reported cases, and dumps of whole clusters."""

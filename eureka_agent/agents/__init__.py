"""Runs served to coding agents, within a budget that they cannot raise."""

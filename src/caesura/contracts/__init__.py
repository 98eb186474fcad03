"""Contracts: know before a plan runs that its state stays bounded and its answers come out."""

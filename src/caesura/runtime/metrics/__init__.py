"""What a running query shows to monitors: figures for Prometheus, health for whoever restarts it."""

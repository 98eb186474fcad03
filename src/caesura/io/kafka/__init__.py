"""Kafka: topics as sources and as sinks, without a connector of Spark's."""

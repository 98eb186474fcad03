"""Runs a query over a word of items."""


class Evaluator:
    pass


def evaluate(): ...
def explain(): ...

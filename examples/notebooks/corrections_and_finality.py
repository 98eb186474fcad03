# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Corrections and finality
#
# The same stream, taken in three ways: `changes` as they come, `final` rows only, or `marked`: changes, and
# a mark when a row becomes final.

# %%
import pyarrow as pa

import caesura as cz

orders = cz.input_stream("orders", pa.schema([("shop", pa.string()), ("amount", pa.int64())]))
revenue = orders.group_by("shop").tumbling(10).agg(revenue=cz.sum("amount"))

# %% [markdown]
# A query in this process is fed by hand here: an order, a promise, a late order, and another promise.

# %%
query = revenue.query(output="marked")
for item in cz.parse(
    """
     LE  RE | shop amount |
      3   4 | A    30     | +
    -- 2 --
     12  13 | A    5      | +
      9  10 | A    12     | +   late, but within the promise
    -- 10 --
    """
):
    query.feed("orders", item)
query.run()
print(cz.draw(query.take("out")))

# %% [markdown]
# What the query has done and holds: one window is still open.

# %%
query

# %%
assert query.state_rows > 0

# %% [markdown]
# The end of the input makes everything final, and nothing is held any more.

# %%
query.feed("orders", cz.definite())
query.run()
print(cz.draw(query.take("out")))

# %%
assert query.state_rows == 0

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
# # First steps
#
# Readings of two road segments. One comes six ticks late, one comes far too late.

# %%
import caesura as cz
from caesura import col

readings = cz.from_rows(
    [
        {"ts": 13, "segment": 1, "speed": 62.0},
        {"ts": 16, "segment": 2, "speed": 30.0},
        {"ts": 24, "segment": 1, "speed": 40.0},
        {"ts": 18, "segment": 1, "speed": 48.0},  # six ticks late
        {"ts": 41, "segment": 2, "speed": 55.0},
        {"ts": 12, "segment": 1, "speed": 99.0},  # too late
    ],
    time="ts",
    punctuate=cz.delay(8),
    batch_size=1,
)
speeds = readings.group_by("segment").tumbling(10).agg(speed=cz.avg("speed"), n=cz.count())

# %% [markdown]
# A stream shows itself as its plan: what each step does, which columns it has, and what it promises.

# %%
speeds

# %% [markdown]
# `preview` runs it in this process. Every row is drawn where it lives.

# %%
preview = speeds.preview()
preview

# %%
print(preview)

# %% [markdown]
# The late row corrected the window that it belongs to. A trace shows the correction, step by step.

# %%
trace = speeds.trace("ts = 18")
trace

# %%
assert [t.kind for t in trace["tumbling"].caused] == ["-", "+"]

# %% [markdown]
# The row that came far too late is in the late table, with the reason.

# %%
late = speeds.run().late["read"]
late.to_pandas()

# %%
assert late["reason"].to_pylist() == ["time 12 came after its lane had passed 33"]

# %% [markdown]
# And a plot: windows as lines, as high as their speed.

# %%
figure = speeds.plot(by="segment", value="speed")
figure

# %%
fast = readings.where(col("speed") > 50)
fast.preview()

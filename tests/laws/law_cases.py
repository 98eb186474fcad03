"""All cases of the steps that need no other room; to import it registers them."""

from __future__ import annotations

import aggregate_law_cases  # noqa: F401
import expression_law_cases  # noqa: F401
import group_law_cases  # noqa: F401
import join_law_cases  # noqa: F401
import match_law_cases  # noqa: F401
import nested_law_cases  # noqa: F401
import row_law_cases  # noqa: F401

"""Values of any column type, in growing order: to ask rules with, and to make streams of.

>>> sample_value(pa.string(), 7), sample_value(pa.int8(), 130)
('000000007', 2)
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa


def sample_value(type_: pa.DataType, number: int) -> Any:
    """The n-th value of a type, growing; types with few values begin again."""
    if pa.types.is_boolean(type_):
        return bool(number % 2)
    if pa.types.is_integer(type_):
        return number % (1 << (type_.bit_width - 1))
    if pa.types.is_floating(type_):
        return float(number)
    if pa.types.is_decimal(type_):
        return Decimal(number)
    if pa.types.is_timestamp(type_):
        return datetime(2000, 1, 1) + timedelta(seconds=number)
    if pa.types.is_date(type_):
        return date(2000, 1, 1) + timedelta(days=number)
    if pa.types.is_struct(type_):
        return {field.name: sample_value(field.type, number) for field in type_}
    if pa.types.is_list(type_):
        return [sample_value(type_.value_type, number)]
    if pa.types.is_map(type_):
        return [(sample_value(type_.key_type, number), sample_value(type_.item_type, number))]
    text = f"{number:09d}"
    return text.encode() if pa.types.is_binary(type_) or pa.types.is_large_binary(type_) else text

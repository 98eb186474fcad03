"""What an operator offers, for any input schemes: its general form, with its schema put in.

A form is shown and asked, never spread out: `on` gives the contract for the schemes at hand.

>>> import pyarrow as pa
>>> from caesura.ops.input import Input
>>> from caesura.ops.join import Join
>>> r = Input(label="r", payload=pa.schema([("a", pa.int64()), ("b", pa.int64())]))
>>> s = Input(label="s", payload=pa.schema([("k", pa.int64()), ("c", pa.int64())]))
>>> offering = Offering.of(Join(inputs=(r, s), on=(("b", "k"),)))
>>> print(offering)
<In1=PS1, In2=PS2, Out=PS1[time, a, b] with PS2[time, k as b, c]>
  left rows, until input 2 promises on k or time, past their ends
  right rows, until input 1 promises on b or time, past their ends
>>> on_key = Scheme.parse("{[[b:#]]}", ["time", "a", "b"]), Scheme.parse("{[[k:#]]}", ["time", "k", "c"])
>>> print(offering.on(*on_key).contract.outs[0])
{[[time:-, a:-, b:#, c:-]]}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from caesura.contracts.derive import Derived, Ends, derive
from caesura.contracts.rules import Rule, rule_of
from caesura.plan import Node
from caesura.punctuation.scheme import Scheme
from caesura.punctuation.template import Template


@dataclass(frozen=True)
class Offering:
    """All contracts of one operator, as the rule that gives them."""

    rule: Rule

    @staticmethod
    def of(node: Node) -> Offering:
        """What a step of a plan offers.

        Parameters
        ----------
        node
            A plan's step.

        Returns
        -------
        Offering
            All its contracts, as the rule that gives them.

        Examples
        --------
        >>> import pyarrow as pa
        >>> import caesura as cz
        >>> from caesura.contracts import Offering, Scheme
        >>> clicks = cz.input_stream("clicks", pa.schema([("id", pa.int64())]))
        >>> offering = Offering.of(clicks.where("id > 3").node)
        >>> print(offering)
        <In=PS, Out=PS[time, id]>
        """
        return Offering(rule_of(node))

    def on(self, *schemes: Scheme, ends: Sequence[Ends] = ()) -> Derived:
        """The contract for some input schemes, and the guarantees that it cannot give.

        Parameters
        ----------
        *schemes
            What each input promises.
        ends
            What is known of the ends of each input's lifetimes.

        Returns
        -------
        Derived
            The contract and what is not met.

        Examples
        --------
        >>> import pyarrow as pa
        >>> import caesura as cz
        >>> from caesura.contracts import Offering, Scheme
        >>> clicks = cz.input_stream("clicks", pa.schema([("id", pa.int64())]))
        >>> offering = Offering.of(clicks.where("id > 3").node)
        >>> print(offering.on(Scheme.parse("{[[time:+, id:-]]}")).contract)
        <In={[[time:+, id:-]]}, Out={[[time:+, id:-]]}, Feedback.In=any, Feedback.Out=none>
        """
        return derive(self.rule, schemes, ends)

    def passes(self, port: int) -> dict[str, str]:
        """The attributes of an input on which punctuation passes.

        Parameters
        ----------
        port
            The number of the input.

        Returns
        -------
        dict
            Each with its name behind the step.

        Examples
        --------
        >>> import pyarrow as pa
        >>> import caesura as cz
        >>> from caesura.contracts import Offering, Scheme
        >>> clicks = cz.input_stream("clicks", pa.schema([("id", pa.int64())]))
        >>> offering = Offering.of(clicks.where("id > 3").node)
        >>> offering.passes(0)
        {'time': 'time', 'id': 'id'}
        """
        found: dict[str, str] = {}
        names = self.rule.inputs[port]
        for name in names:
            template = Template.of(names, {name: "+" if name == "time" else "#"})
            out = self.rule.share(port, template)
            if out is not None and out.marked:
                found[name] = next(iter(out.marked))
        return found

    def __str__(self) -> str:
        several = len(self.rule.inputs) > 1
        variables = [f"PS{i}" if several else "PS" for i in range(1, len(self.rule.inputs) + 1)]
        shares = []
        for port, variable in enumerate(variables):
            kept = [n if n == out else f"{n} as {out}" for n, out in self.passes(port).items()]
            shares.append(f"{variable}[{', '.join(kept)}]")
        ins = [f"In{i if several else ''}={v}" for i, v in enumerate(variables, 1)]
        head = f"<{', '.join([*ins, 'Out=' + ' with '.join(shares)])}>" if ins else "<Out=what is declared>"
        return "\n".join([head, *(f"  {hold}" for hold in self.rule.holds)])

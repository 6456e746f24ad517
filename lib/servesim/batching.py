"""What one step holds: prompts, decodes, or both. Policies see counts only.

A policy has these members:

room(decoding, held)  prompt tokens that the next step may compute, when `decoding` sequences are
                      ready to decode and `held` slots are taken: a whole number, or INF
whole                 a prompt is computed in one piece (one that is larger than `room` goes alone)
alone                 prompts run in steps of their own, before the decodes
together              slots are given back only when everyone in the batch is done
padded                everyone costs as much as the longest

Those with a budget raise ValueError unless it is a whole number of at least 1, or INF.
"""

from dataclasses import dataclass

from servesim.checks import whole

INF = float("inf")


def _check_budget(policy) -> None:
    if policy.budget != INF:
        whole(1, budget=policy.budget)


@dataclass(frozen=True)
class Mixed:
    """Prompts join the decodes in one step (Orca).

    budget  tokens in one step

    Source: Yu et al. (2022), Orca: iteration-level scheduling with selective batching.
    """

    budget: float = INF
    __post_init__ = _check_budget
    whole = True
    alone = together = padded = False

    def room(self, decoding: int, held: int) -> float:
        return self.budget - decoding


@dataclass(frozen=True)
class PrefillFirst:
    """A step of prompts only, whenever one can start: the decodes wait.

    Source: vLLM's first scheduler (2023).
    """

    budget: float = INF
    __post_init__ = _check_budget
    whole = alone = True
    together = padded = False

    def room(self, decoding: int, held: int) -> float:
        return self.budget


@dataclass(frozen=True)
class DecodeFirst:
    """No prompt starts while anybody decodes."""

    budget: float = INF
    __post_init__ = _check_budget
    whole = True
    alone = together = padded = False

    def room(self, decoding: int, held: int) -> float:
        return 0 if decoding else self.budget


@dataclass(frozen=True)
class Chunked:
    """Every decode, and as much of the prompts as is left of the step's token budget.

    Source: Agrawal et al. (2024), Sarathi-Serve, arXiv:2403.02310.
    """

    budget: float
    __post_init__ = _check_budget
    whole = alone = together = padded = False

    def room(self, decoding: int, held: int) -> float:
        return max(0, self.budget - decoding)


@dataclass(frozen=True)
class Static:
    """A batch starts when the last one is over, and is over when its longest member is.

    padded  the whole batch computes as many tokens, over as much cache, as its longest member

    Source: request-level batching, as Yu et al. (2022) describe it.
    """

    padded: bool = False
    whole = together = True
    alone = False

    def room(self, decoding: int, held: int) -> float:
        return 0 if held else INF

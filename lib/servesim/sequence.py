"""A request in flight: what the engine, and every policy, knows of it."""

from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Sequence:
    """A request and how far it is. Times are in fs.

    The engine knows the ids of prompt + made tokens. A step computes some of those that are not
    cached; when it computes the last of them, the next token comes out.
    """

    index: int  # of its request
    arrival: int
    prompt: int  # tokens
    output: int  # tokens that it will make: a policy that looks here is an oracle
    group: int = 0
    blocks: tuple[int, ...] = ()  # ids of the prompt's full blocks

    made: int = 0  # tokens delivered
    cached: int = 0  # tokens in the cache
    first: int | None = None  # when token 1 came out
    finish: int | None = None
    admitted: int | None = None  # when it was first admitted
    turn: int = 0  # number of its last admission, counted over all
    prefill: int = 0  # tokens to have cached before it decodes, one at a time
    steps: int = 0  # that it took part in since then
    swapped: int = 0  # tokens that wait in the host's memory
    found: int = 0  # prompt tokens that were found in the cache, over all admissions
    preempted: int = 0  # times

    @property
    def known(self) -> int:
        """Tokens whose ids are known."""
        return self.prompt + self.made

    @property
    def piece(self) -> int:
        """Tokens that it could compute in one step."""
        return max(1, self.prefill - self.cached)

    @property
    def done(self) -> bool:
        return self.made == self.output

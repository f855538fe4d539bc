"""What was counted since the last logged step."""

from dataclasses import dataclass, field


@dataclass
class Window:
    """Sums over the steps since the last logged one.

    Attributes:
        samples: Samples seen.
        tokens: Tokens without padding.
        padded_tokens: Tokens with padding.
        weighted_loss: Loss times samples; NaN and infinity stay what they are.
    """

    samples: int = 0
    tokens: int = 0
    padded_tokens: int = 0
    weighted_loss: float = field(default=0.0)

    def add(self, samples: int, tokens: int, padded_tokens: int, loss: float) -> None:
        """Count one step; `loss` is the mean over its samples."""
        self.samples += samples
        self.tokens += tokens
        self.padded_tokens += padded_tokens
        self.weighted_loss += loss * samples

    @property
    def loss(self) -> float:
        """Mean loss over the samples of the window."""
        return self.weighted_loss / self.samples

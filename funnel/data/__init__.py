"""The nouns: alphabets, the joint distribution, protocols, and the channel that they release."""

from funnel.data.alphabet import Alphabet, Label
from funnel.data.joint import Joint
from funnel.data.protocol import Protocol, Randomiser
from funnel.data.unary import AnyProtocol, UnaryProtocol

__all__ = ["Alphabet", "AnyProtocol", "Joint", "Label", "Protocol", "Randomiser", "UnaryProtocol"]

"""The nouns: alphabets, the joint distribution, protocols, and what information they carry."""

from funnel.model.alphabet import Alphabet, Label
from funnel.model.joint import Joint
from funnel.model.protocol import Protocol
from funnel.model.unary import AnyProtocol, UnaryProtocol

__all__ = ["Alphabet", "AnyProtocol", "Joint", "Label", "Protocol", "UnaryProtocol"]

"""The nouns: alphabets, the joint distribution, protocols, and what information they carry."""

from funnel.model.alphabet import Alphabet, Label
from funnel.model.joint import Joint
from funnel.model.protocol import Protocol

__all__ = ["Alphabet", "Joint", "Label", "Protocol"]

"""The part of the audit that must be trusted: it imports the standard library, numpy and `funnel.format`."""

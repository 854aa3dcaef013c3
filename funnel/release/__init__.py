"""From a solved protocol to a published folder: keys, draws, their check, the manifest, the ledger."""

"""Document 004: model-agnostic private learning via stability."""

"""What of a conversation is worth keeping, told by signs and without a model."""

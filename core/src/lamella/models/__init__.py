"""Language models behind one protocol, `lamella.types.model.Model`.

    registry, choice    providers by name; which model runs and why; making it
    known               sizes and prices of well-known models
    classify            what a provider's error means (its wordings: error_patterns)
    openai, anthropic, gemini    one wire format each, imported when a model of it is made
    adapter             what the three share, over pydantic-ai: history -> blocks -> replies, failures
    offline, scripted   models without a network

Only the adapters and what they share import pydantic-ai; the registry never does.
"""

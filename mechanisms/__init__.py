"""Reference mechanisms in folders by topic, each with its mutants beside it."""

"""Statistical-query oracles, algorithms that use them, and private learners driven by them."""

"""Events: yes/no questions about an output, and the learners that propose them."""

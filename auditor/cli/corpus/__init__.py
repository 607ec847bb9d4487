"""The corpus of real defects: its cases, how they are confirmed, and what each auditor finds in them."""

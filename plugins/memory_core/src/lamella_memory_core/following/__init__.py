"""Following the files while a program runs."""

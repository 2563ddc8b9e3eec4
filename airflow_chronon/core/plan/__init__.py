"""What a reconcile would do, as data: facts go in, a tuple of actions comes out (C22 to C25, H13)."""

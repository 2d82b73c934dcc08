"""Does anything grow? Many requests over many schemas at a real service, whose processes are looked at all the while."""

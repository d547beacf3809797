"""One call of an agent, as worker, healer or reviewer: started, heard, explained when it ends without a result."""

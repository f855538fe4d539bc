"""From files to micro-batches: read, tokenise once, plan, collate."""

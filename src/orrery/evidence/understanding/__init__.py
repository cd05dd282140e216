"""What new papers say, and what they mean to a reader: understood by rule, ranked, and tried in a deployment."""

"""What every copy uses: requests, conditional writes, comparisons, digests, memory and pipes."""

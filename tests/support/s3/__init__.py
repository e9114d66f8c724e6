"""S3 for tests, always over HTTP. Which double is for what:

- `fake_s3`: the one fake, the lab's, in this process; its connections may be slow. `deviations` says what it does
  otherwise than Amazon's, and has what the lab's does not know: ACLs, lists of uploads, changes of tags, digests.
- `fake_buckets`: two buckets of that fake with a worker's clients; a function of the test may respond in its stead.
  `copies` copies one object between them, `pipes` streams one that is cut off, damaged or replaced on the way.
- `stand_in`: a raw socket for what no server of S3 should do: garbage, cut responses, resets, silence.
- `request_log`: a proxy before a real server, which notes, holds, refuses or loses requests.
- `servers`: real servers of other projects. `objects` is what a third party sees of their buckets.
"""

"""`make mutants`: change the critical modules one place at a time, and see whether a nearest test notices.

The operators for Python are those of mutmut (BSD-3-Clause, `mutmut.mutation.mutators`), with four of our own beside
them. mutmut's runner cannot do the rest: it knows one tree of Python sources and no SQL, it starts all servers anew
for each mutant, since its children begin with a new pytest session, and a worker that a test starts with `python -m`
finds the unmutated code. So the runner is our own: a warm pytest process that keeps PostgreSQL and the S3 servers, and
forks for each mutant.

`modules.toml` lists the critical modules with their nearest tests, `named.toml` mutants that lived once,
`equivalent.toml` mutants that no test can tell from the code.
"""

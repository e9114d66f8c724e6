order by n.stretch, n.position limit %(limit)s

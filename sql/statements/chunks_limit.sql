order by n.position limit %(limit)s

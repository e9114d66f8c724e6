select host from rowferry.worker_hosts order by host

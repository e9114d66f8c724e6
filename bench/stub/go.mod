module rowferry.dev/bench/stub

go 1.22

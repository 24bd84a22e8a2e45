package bench_test

import "net"

func listen(path string) (net.Listener, error) { return net.Listen("unix", path) }

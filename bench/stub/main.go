// An S3 server of the benches that does not flatter: answers come one by one, as Go's scheduler spreads them, bodies in
// pieces of 32 kB, and the latency may vary. It keeps no bytes, and checks no signature.
package main

import (
	"bytes"
	"flag"
	"log"
	"net"
	"net/http"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:9100", "the address to listen at")
	latency := flag.Float64("latency", 0, "milliseconds before each answer")
	sigma := flag.Float64("sigma", 0, "spread of the latency: lognormal around its median")
	size := flag.Int("size", 20_000, "bytes of each object")
	keys := flag.Int("keys", 0, "objects that a listing of the bucket legacy shows; every other key ending in .png is there, too")
	certificate := flag.String("certificate", "", "speak TLS, with the certificate in this file")
	key := flag.String("key", "", "the file with its key")
	flag.Parse()

	handler := newStub(*latency, *sigma, bytes.Repeat([]byte("x"), *size), *keys)
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	if *certificate != "" {
		log.Fatal(http.ServeTLS(listener, handler, *certificate, *key))
	}
	log.Fatal(http.Serve(listener, handler))
}

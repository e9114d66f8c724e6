package main

import (
	"crypto/md5"
	"fmt"
	"io"
	"math"
	"math/rand"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	header   = `<?xml version="1.0" encoding="UTF-8"?>`
	modified = "2024-01-02T03:04:05.000Z"
)

// stub has every object of the bucket `legacy`, and remembers which keys of other buckets were written.
type stub struct {
	latency, sigma             float64
	body                       []byte
	etag                       string
	bucket                     *bucket
	written                    sync.Map
	requests, writes, refusals atomic.Int64
}

func newStub(latency, sigma float64, body []byte, bucket *bucket) *stub {
	return &stub{latency: latency, sigma: sigma, body: body, etag: fmt.Sprintf(`"%x"`, md5.Sum(body)), bucket: bucket}
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/_stats" {
		fmt.Fprintf(w, `{"requests":%d,"writes":%d,"refusals":%d}`, s.requests.Load(), s.writes.Load(), s.refusals.Load())
		return
	}
	io.Copy(io.Discard, r.Body)
	s.requests.Add(1)
	s.wait()
	w.Header().Set("Server", "stub")
	w.Header().Set("x-amz-request-id", "AB12")
	_, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case r.Method == http.MethodPut:
		s.write(w, r)
	case key == "":
		s.list(w, r)
	default:
		s.read(w, r)
	}
}

// wait sleeps for the latency of one answer.
func (s *stub) wait() {
	if s.latency > 0 {
		time.Sleep(time.Duration(s.latency * math.Exp(s.sigma*rand.NormFloat64()) * float64(time.Millisecond)))
	}
}

// write answers PutObject and CopyObject; both heed If-None-Match.
func (s *stub) write(w http.ResponseWriter, r *http.Request) {
	if !s.bucket.take() {
		s.refusals.Add(1)
		answer(w, http.StatusServiceUnavailable, refusal("SlowDown", "Please reduce your request rate."))
		return
	}
	if _, isThere := s.written.LoadOrStore(r.URL.Path, true); isThere && r.Header.Get("If-None-Match") == "*" {
		answer(w, http.StatusPreconditionFailed, refusal("PreconditionFailed", "A pre-condition did not hold."))
		return
	}
	s.writes.Add(1)
	if r.Header.Get("x-amz-copy-source") == "" {
		w.Header().Set("ETag", s.etag)
		return
	}
	quoted := strings.ReplaceAll(s.etag, `"`, "&quot;")
	answer(w, http.StatusOK, "<CopyObjectResult><LastModified>"+modified+"</LastModified><ETag>"+quoted+"</ETag></CopyObjectResult>")
}

// read answers HEAD and GET of an object.
func (s *stub) read(w http.ResponseWriter, r *http.Request) {
	if _, isThere := s.written.Load(r.URL.Path); !isThere && !strings.HasPrefix(r.URL.Path, "/legacy/") {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	headers := w.Header()
	headers.Set("ETag", s.etag)
	headers.Set("Content-Type", "image/png")
	headers.Set("Content-Length", strconv.Itoa(len(s.body)))
	headers.Set("Accept-Ranges", "bytes")
	headers.Set("Last-Modified", "Tue, 02 Jan 2024 03:04:05 GMT")
	if r.Method == http.MethodGet {
		w.Write(s.body)
	}
}

// list answers for a bucket: it is there, and has one object where it is asked for a listing.
func (s *stub) list(w http.ResponseWriter, r *http.Request) {
	answer(w, http.StatusOK, "<ListBucketResult><KeyCount>0</KeyCount><IsTruncated>false</IsTruncated></ListBucketResult>")
}

func refusal(code, message string) string {
	return "<Error><Code>" + code + "</Code><Message>" + message + "</Message></Error>"
}

func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("Content-Length", strconv.Itoa(len(header)+len(body)))
	w.WriteHeader(status)
	io.WriteString(w, header+body)
}

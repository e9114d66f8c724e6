package main

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

var digest = regexp.MustCompile(`[0-9a-f]{32}`)

// write answers PutObject, CopyObject and the steps of an upload by parts.
func (s *stub) write(w http.ResponseWriter, r *http.Request, body sent) {
	asked := r.URL.Query()
	isPost := r.Method == http.MethodPost
	if isPost && asked.Has("uploads") {
		id := s.uploads.Add(1)
		answer(w, http.StatusOK, fmt.Sprintf("<InitiateMultipartUploadResult><UploadId>%d</UploadId></InitiateMultipartUploadResult>", id))
		return
	}
	switch {
	case isPost:
		etag := combine(body.text)
		if s.keep(w, r, etag) {
			answer(w, http.StatusOK, "<CompleteMultipartUploadResult><ETag>"+escape(etag)+"</ETag></CompleteMultipartUploadResult>")
		}
	case asked.Has("partNumber"):
		w.Header().Set("ETag", s.partETag(body.size))
	case !s.keep(w, r, s.etag):
	case r.Header.Get("x-amz-copy-source") == "":
		w.Header().Set("ETag", s.etag)
	default:
		answer(w, http.StatusOK, "<CopyObjectResult><LastModified>"+modified+"</LastModified><ETag>"+escape(s.etag)+"</ETag></CopyObjectResult>")
	}
}

// keep remembers an object, or refuses it because one is there and the client wanted none.
func (s *stub) keep(w http.ResponseWriter, r *http.Request, etag string) bool {
	_, isThere := s.written.LoadOrStore(r.URL.Path, etag)
	if isThere && r.Header.Get("If-None-Match") == "*" {
		answer(w, http.StatusPreconditionFailed, refusal("PreconditionFailed", "A pre-condition did not hold."))
		return false
	}
	if isThere {
		s.written.Store(r.URL.Path, etag)
	} else {
		s.objects.Add(1)
	}
	return true
}

// remove forgets an object; an upload that is given up leaves nothing.
func (s *stub) remove(w http.ResponseWriter, r *http.Request) {
	if !r.URL.Query().Has("uploadId") {
		if _, isThere := s.written.LoadAndDelete(r.URL.Path); isThere {
			s.objects.Add(-1)
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

// partETag returns the ETag of a part, which depends on its size alone.
func (s *stub) partETag(size int64) string {
	if etag, isKnown := s.partETags.Load(size); isKnown {
		return etag.(string)
	}
	etag := quote(bytes.Repeat([]byte("x"), int(size)))
	s.partETags.Store(size, etag)
	return etag
}

// combine returns the ETag of an object made of the parts that a document names.
func combine(document string) string {
	sum, parts := md5.New(), 0
	for _, text := range digest.FindAllString(document, -1) {
		part, _ := hex.DecodeString(text)
		sum.Write(part)
		parts++
	}
	return fmt.Sprintf(`"%x-%d"`, sum.Sum(nil), parts)
}

func quote(body []byte) string {
	return fmt.Sprintf(`"%x"`, md5.Sum(body))
}

func escape(etag string) string {
	return strings.ReplaceAll(etag, `"`, "&quot;")
}

func refusal(code, message string) string {
	return "<Error><Code>" + code + "</Code><Message>" + message + "</Message></Error>"
}

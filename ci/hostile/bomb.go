//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
)

// bomb is 1 GiB of zeros in a megabyte: the same compressed zeros again and again, so
// that making it takes no time.
func bomb() []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(make([]byte, 1<<20))
	w.Close()
	return bytes.Repeat(b.Bytes(), 1024)
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

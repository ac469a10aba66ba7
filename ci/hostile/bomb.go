//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
)

// bomb is 1 GiB of zeros in a megabyte.
func bomb() []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	zeros := make([]byte, 1<<20)
	for range 1024 {
		_, _ = w.Write(zeros)
	}
	w.Close()
	return b.Bytes()
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

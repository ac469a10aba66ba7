package agui_test

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transport"
)

// A certificate of a private authority is trusted where SSL_CERT_FILE says so, and else the message says what to do. No
// agent is blamed for it.
func TestTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, sse(startOf, endOf))
	}))
	defer server.Close()
	r := against(t, server.URL, overTLS)
	if got := told(r); !r.NotStarted || !strings.Contains(got, "is not trusted: set SSL_CERT_FILE to a file") {
		t.Error(got)
	}
	plain := httptest.NewServer(server.Config.Handler)
	defer plain.Close()
	r = against(t, strings.Replace(plain.URL, "http:", "https:", 1), overTLS)
	if got := told(r); !r.NotStarted || !strings.Contains(got, "does not speak TLS") {
		t.Error(got)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	child := exec.Command(os.Args[0], "-test.run", "^TestTLSInAChild$") // what is trusted is read once
	child.Env = append(os.Environ(), transport.Authorities+"="+file, "ACP_TEST_TLS_URL="+server.URL)
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

const overTLS = "thread main id=t\ncheck a\nrun 'Say hi.' with='{\"runId\":\"r\"}'\nawait finished"

// TestTLSInAChild is a part of TestTLS.
func TestTLSInAChild(t *testing.T) {
	url := os.Getenv("ACP_TEST_TLS_URL")
	if url == "" {
		t.Skip("TestTLS runs it")
	}
	if r := against(t, url, overTLS); r.Verdict != results.Pass {
		t.Error(told(r))
	}
}

package agui_test

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/scenarios"
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
	const script = "thread main id=t\ncheck a\nrun 'Say hi.' with='{\"runId\":\"r\"}'\nawait finished"
	t.Setenv(endpoint.Authorities, "")
	r := against(t, server.URL, script)
	if got := told(r); !r.NotStarted || !strings.Contains(got, "is of an authority that is not trusted here: SSL_CERT_FILE names") {
		t.Error(got)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(endpoint.Authorities, file)
	if r := against(t, server.URL, script); r.Verdict != scenarios.Pass {
		t.Error(told(r))
	}
	plain := httptest.NewServer(server.Config.Handler)
	defer plain.Close()
	r = against(t, strings.Replace(plain.URL, "http:", "https:", 1), script)
	if got := told(r); !r.NotStarted || !strings.Contains(got, "does not speak TLS") {
		t.Error(got)
	}
}

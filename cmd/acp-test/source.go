package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
)

// source describes how a CI machine gets this program.
type source struct {
	Release string // version of a release, or latest; "" if the source is not a release
	Fetch   string // shell line that puts the program into .bin
	Go      bool   // Fetch compiles the program
	assumed string // condition that CI must meet, told to the user
}

const (
	module   = "github.com/acp-test/acp-test"
	releases = "https://" + module + "/releases"
	sources  = "CHECKOUT (its folder), TARBALL (from ci/release, in this repository), URL (of such a tarball), " +
		"VERSION or latest (after a release)"
)

var versionNumber = lazy.Regexp(`^v?\d+\.\d+\.\d+(-[0-9A-Za-z][0-9A-Za-z.]*)?$`)

// errUnknownSource means that a CI machine has no known way to get this program.
var errUnknownSource = errors.New("this acp-test was built from a checkout that CI cannot reach; " +
	"say where CI gets it: --from " + sources)

// sourceOf parses the value of --from. For "" it returns the release or checkout that this program comes from.
func (h *host) sourceOf(from string) (source, error) {
	switch {
	case from == "":
		return h.ownSource()
	case from == "latest" || versionNumber().MatchString(from):
		return releaseSource(strings.TrimPrefix(from, "v")), nil
	case strings.Contains(from, "://"):
		from = withoutUser(from)
		return source{Fetch: unpacked("curl -fsSL " + quoted([]string{from}) + " | tar -xz"),
			assumed: "CI has curl and reaches " + from}, nil
	}
	info, err := os.Stat(h.absolute(from))
	switch {
	case err != nil:
		return source{}, fmt.Errorf("--from %s: %w; expected %s", from, err, sources)
	case info.IsDir():
		return checkoutSource(h.absolute(from))
	}
	return h.tarballSource(from)
}

// ownSource returns the source of the running program: its release, else the checkout that contains it.
func (h *host) ownSource() (source, error) {
	if v := version(); versionNumber().MatchString(v) && !strings.Contains(v, "-0.") {
		return releaseSource(strings.TrimPrefix(v, "v")), nil
	}
	program, err := filepath.EvalSymlinks(h.self)
	if err != nil {
		return source{}, errUnknownSource
	}
	for dir := filepath.Dir(program); ; dir = filepath.Dir(dir) {
		if s, err := checkoutSource(dir); err == nil {
			return s, nil
		}
		if dir == filepath.Dir(dir) {
			return source{}, errUnknownSource
		}
	}
}

func releaseSource(version string) source {
	download := "latest/download"
	if version != "latest" {
		download = "download/v" + version
	}
	archive := releases + "/" + download + "/acp-test-linux-amd64.tar.gz"
	return source{Release: version, Fetch: unpacked("curl -fsSL " + archive + " | tar -xz"),
		assumed: "release " + version + " is published at " + releases}
}

// checkoutSource returns a source for a checkout of this program. It returns an error if dir is not such a checkout,
// or if a CI machine cannot clone its origin.
func checkoutSource(dir string) (source, error) {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil || !strings.HasPrefix(string(text), "module "+module+"\n") {
		return source{}, fmt.Errorf("--from %s: this is not a checkout of %s; expected %s", dir, module, sources)
	}
	git := func(args ...string) (string, error) {
		out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).Output()
		return strings.TrimSpace(string(out)), err
	}
	origin, err := git("remote", "get-url", "origin")
	if err != nil || filepath.IsAbs(origin) || strings.HasPrefix(origin, ".") || strings.HasPrefix(origin, "file:") {
		return source{}, fmt.Errorf("--from %s: CI cannot clone it from its origin %q; push it to a server and run "+
			"git remote set-url origin URL, or use a tarball from ci/release", dir, origin)
	}
	origin = withoutUser(origin)
	commit, err := git("rev-parse", "HEAD")
	if err != nil {
		return source{}, fmt.Errorf("--from %s: it has no commit: %w", dir, err)
	}
	return source{Go: true, Fetch: fmt.Sprintf("git clone -q %s .acp-test && git -C .acp-test checkout -q %s && "+
		"go build -C .acp-test -o ../.bin/acp-test ./cmd/acp-test", quoted([]string{origin}), commit),
		assumed: fmt.Sprintf("CI has git and Go 1.26, and may clone %s, which has commit %.12s", origin, commit)}, nil
}

// withoutUser removes the user name and password from a URL, because many people can read CI files.
func withoutUser(address string) string {
	u, err := url.Parse(address)
	if err != nil || !strings.HasPrefix(u.Scheme, "http") || u.User == nil {
		return address
	}
	u.User = nil
	return u.String()
}

// tarballSource returns a source for an archive from ci/release that the user commits to the repository.
func (h *host) tarballSource(from string) (source, error) {
	file, err := filepath.Rel(h.cwd, h.absolute(from))
	if err != nil || !filepath.IsLocal(file) {
		return source{}, fmt.Errorf("--from %s: copy the file into this repository, because CI sees only that", from)
	}
	if err := holdsProgram(h.absolute(from)); err != nil {
		return source{}, fmt.Errorf("--from %s: %w; expected acp-test-linux-amd64.tar.gz or "+
			"npm/acp-test-linux-x64-VERSION.tgz from ci/release", from, err)
	}
	file = filepath.ToSlash(file)
	return source{Fetch: unpacked("tar -xzf " + quoted([]string{file})),
		assumed: file + " is committed, and CI runs on the system it was built for"}, nil
}

func unpacked(command string) string {
	return "mkdir -p .bin && " + command + " -C .bin --strip-components=1"
}

// holdsProgram returns nil if the archive contains the program in its only folder, and an error otherwise.
func holdsProgram(file string) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	unzipped, err := gzip.NewReader(in)
	if err != nil {
		return err
	}
	for archive := tar.NewReader(unzipped); ; {
		switch head, err := archive.Next(); {
		case errors.Is(err, io.EOF):
			return errors.New("the archive does not contain the program acp-test")
		case err != nil:
			return err
		case path.Base(head.Name) == "acp-test" && strings.Count(head.Name, "/") == 1:
			return nil
		}
	}
}

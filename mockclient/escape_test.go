//go:build unix

package mockclient_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/mockclient"
)

// An agent tries every way out of its workspace that paths, links and races give: what is
// outside is neither read nor written.
var _ = Describe("a path that leads out", func() {
	var dir, outside, folder, within string
	BeforeEach(func() {
		folder, within = "", ""
		dir, outside = GinkgoT().TempDir(), GinkgoT().TempDir()
		Expect(os.WriteFile(outside+"/secret", []byte("kept outside"), 0o600)).To(Succeed())
		Expect(os.Mkdir(outside+"/sub", 0o700)).To(Succeed())
		Expect(os.Symlink(".", outside+"/in")).To(Succeed())
		Expect(os.MkdirAll(dir+"/sub/sub", 0o700)).To(Succeed())
	})
	untouched := func() {
		GinkgoHelper()
		var names []string
		all, err := os.ReadDir(outside)
		Expect(err).NotTo(HaveOccurred())
		for _, d := range all {
			names = append(names, d.Name())
		}
		Expect(names).To(Equal([]string{"in", "secret", "sub"}))
		Expect(os.ReadFile(outside + "/secret")).To(BeEquivalentTo("kept outside"))
		Expect(os.ReadDir(outside + "/sub")).To(BeEmpty())
	}
	// tries lets an agent ask for each path, and returns the answers that hold what is
	// outside, and how many there were.
	tries := func(paths []string) (leaks []string, asked int) {
		GinkgoHelper()
		done := make(chan struct{})
		e := edit(mockclient.Options{Within: within}, func(p *peer) {
			defer close(done)
			p.handshake()
			for _, path := range paths {
				for _, method := range []string{"fs/read_text_file", "fs/write_text_file"} {
					asked++
					v := p.ask(asked, method, fmt.Sprintf(`{"sessionId":"s","path":%q,"content":"written"}`, path)).v
					if strings.Contains(string(v.Raw()), "kept outside") {
						leaks = append(leaks, method+" "+path)
					}
				}
			}
		})
		open(e, cmp.Or(folder, dir))
		Eventually(done).WithTimeout(time.Minute).Should(BeClosed())
		return leaks, asked
	}

	It("is the folder of no session that has to stay within another", func() {
		Expect(os.Symlink(outside, dir+"/link")).To(Succeed())
		within = dir
		for _, folder = range []string{outside, dir + "/link", "/"} {
			leaks, asked := tries([]string{folder + "/secret", outside + "/secret"})
			Expect(leaks).To(BeEmpty())
			Expect(asked).To(Equal(4))
			untouched()
		}
		within, folder = filepath.Dir(outside), outside
		leaks, _ := tries([]string{outside + "/secret"})
		Expect(leaks).To(HaveLen(1))
	})

	It("leads nowhere", func() {
		base := filepath.Base(outside)
		for name, target := range map[string]string{
			"link": outside, "relative": "../" + base, "again": "link", "sub/deep": "../../" + base, "root": "/",
			"proc": "/proc/self/root", "cwd": "/proc/self/cwd", "sub/up": "..", "sub/sub/up": "../..", "dot": ".",
			"leaf": outside + "/secret", "new": outside + "/new", "long": strings.Repeat("./", 500) + "../" + base,
		} {
			Expect(os.Symlink(target, filepath.Join(dir, name))).To(Succeed())
		}
		for i := range 20 { // a chain that ends outside
			Expect(os.Symlink(fmt.Sprintf("chain%d", i+1), fmt.Sprintf("%s/chain%d", dir, i))).To(Succeed())
		}
		Expect(os.Symlink(outside, dir+"/chain20")).To(Succeed())
		var paths []string
		for _, way := range []string{outside, dir + "/link", dir + "/relative", dir + "/again", dir + "/sub/deep",
			dir + "/root" + outside,
			dir + "/proc" + outside, dir + "/sub/up/../" + base, dir + "/sub/sub/up/../" + base,
			dir + "/dot/../" + base,
			dir + "/dot/dot/link", dir + "/long", dir + "/chain0", dir + "/../" + base, dir + "/sub/../../" + base,
			dir + "//..//" + base,
			dir + "/./.././" + base, "/proc/self/root" + outside, "/" + outside, dir + "/link/../" + base,
			dir + "/none/../../" + base, strings.Repeat("/..", 40) + outside} {
			for _, tail := range []string{"/secret", "//secret", "/./secret", "/sub/../secret", "/in/in/secret", "/new",
				"/sub/new"} {
				paths = append(paths, way+tail)
			}
		}
		paths = append(paths, dir+"/leaf", dir+"/new", dir+"/sub/up/leaf", dir+"/sub/up/new")
		leaks, asked := tries(paths)
		Expect(leaks).To(BeEmpty())
		Expect(asked).To(BeNumerically(">=", 200))
		untouched()
	})

	DescribeTable("leads nowhere while it changes", func(path string, one, other func(at string) error) {
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				at := fmt.Sprintf("%s/next", dir)
				_ = os.RemoveAll(at)
				if _ = one(at); i%2 == 1 {
					_ = os.RemoveAll(at)
					_ = other(at)
				}
				_ = os.RemoveAll(dir + "/flip")
				_ = os.Rename(at, dir+"/flip")
			}
		}()
		paths := make([]string, 250)
		for i := range paths {
			paths[i] = dir + path
		}
		leaks, _ := tries(paths)
		close(stop)
		<-stopped
		Expect(leaks).To(BeEmpty())
		untouched()
	},
		Entry("from a directory to a link", "/flip/secret",
			func(at string) error { return os.Mkdir(at, 0o700) },
			func(at string) error { return os.Symlink(outside, at) }),
		Entry("from a file to a link", "/flip",
			func(at string) error { return os.WriteFile(at, []byte("inside"), 0o600) },
			func(at string) error { return os.Symlink(outside+"/secret", at) }),
		Entry("from one link to another", "/flip/secret",
			func(at string) error { return os.Symlink(dir+"/sub", at) },
			func(at string) error { return os.Symlink(outside, at) }),
		Entry("from nothing to a link", "/flip/sub/new",
			func(string) error { return nil }, func(at string) error { return os.Symlink(outside, at) }),
	)
})

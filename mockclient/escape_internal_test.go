package mockclient

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("an editor that escapes", func() {
	It("writes other JSON with the same values", func() {
		e := &Editor{opts: Options{Escape: true}}
		Expect(string(e.encoded([]byte(`{"a/b":"ü🙂 \/ \\ \" x"}`)))).
			To(Equal(`{"a\/b":"\u00fc\ud83d\ude42 \/ \\ \" x"}`))
		e.opts.Escape = false
		Expect(string(e.encoded([]byte(`"a/ü"`)))).To(Equal(`"a/ü"`))
	})
})

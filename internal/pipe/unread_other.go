//go:build !linux

package pipe

// Unread cannot tell here how many bytes of what was written to a pipe have
// not been read.
func (w Writer) Unread() (n int, ok bool) { return 0, false }

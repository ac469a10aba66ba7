//go:build !linux

package pipe

// Unread returns false: here it is unknown how many bytes of a pipe are unread.
func (w Writer) Unread() (n int, ok bool) { return 0, false }

//go:build !linux

package pipe

// Unread always returns false, because the number of unread bytes is unknown on this system.
func (w Writer) Unread() (n int, ok bool) { return 0, false }

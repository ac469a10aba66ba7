//go:build unix

package evidence

import (
	"io/fs"
	"reflect"
	"syscall"
)

// changed reports whether a file was modified between two calls of Stat. It compares the inode's change time, which a
// user's program cannot set.
func changed(was, is fs.FileInfo) bool {
	a, ok1 := was.Sys().(*syscall.Stat_t)
	b, ok2 := is.Sys().(*syscall.Stat_t)
	return ok1 && ok2 && ctime(a) != ctime(b)
}

// ctime returns the inode's change time. The name of the field differs between systems.
func ctime(s *syscall.Stat_t) any {
	v := reflect.ValueOf(s).Elem()
	for _, name := range []string{"Ctim", "Ctimespec"} {
		if f := v.FieldByName(name); f.IsValid() {
			return f.Interface()
		}
	}
	return nil
}

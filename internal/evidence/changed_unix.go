//go:build unix

package evidence

import (
	"io/fs"
	"reflect"
	"syscall"
)

// changed reports whether a file was changed between was and is. It compares the
// change time, which programs of a user cannot set.
func changed(was, is fs.FileInfo) bool {
	a, ok1 := was.Sys().(*syscall.Stat_t)
	b, ok2 := is.Sys().(*syscall.Stat_t)
	return ok1 && ok2 && ctime(a) != ctime(b)
}

// ctime returns the time of the last change, whose field has different names on
// different systems.
func ctime(s *syscall.Stat_t) any {
	v := reflect.ValueOf(s).Elem()
	for _, name := range []string{"Ctim", "Ctimespec"} {
		if f := v.FieldByName(name); f.IsValid() {
			return f.Interface()
		}
	}
	return nil
}

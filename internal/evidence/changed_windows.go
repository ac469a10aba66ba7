package evidence

import "io/fs"

// changed reports whether the time of the last write differs between two infos of a file.
func changed(was, is fs.FileInfo) bool { return !was.ModTime().Equal(is.ModTime()) }

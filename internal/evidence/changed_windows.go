package evidence

import "io/fs"

// changed compares the times of the last write.
func changed(was, is fs.FileInfo) bool { return !was.ModTime().Equal(is.ModTime()) }

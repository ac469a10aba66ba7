package evidence

import "io/fs"

// changed goes by the time of the last write.
func changed(was, is fs.FileInfo) bool { return !was.ModTime().Equal(is.ModTime()) }

package confined

import "io/fs"

const nonblock = 0

// Links returns how many names a file has, 1 where that is not known.
func Links(fs.FileInfo) uint64 { return 1 }

package confined

import "io/fs"

const nonblock = 0

// Links returns 1, because the number of names of a file is unknown here.
func Links(fs.FileInfo) uint64 { return 1 }

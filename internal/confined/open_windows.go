package confined

import "io/fs"

const nonblock = 0

// Links returns 1, because the number of hard links to a file is unknown on this system.
func Links(fs.FileInfo) uint64 { return 1 }
